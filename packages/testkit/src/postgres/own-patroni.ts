import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { expect, onTestFinished } from 'vitest';
import { eventually } from '../eventually.ts';
import { findFreePort } from '../network/free-port.ts';

/** PostgreSQL of Debian, which has what Patroni needs to make a replica. */
const BIN_DIR = '/usr/lib/postgresql/15/bin';
const PATIENCE = { timeoutMs: 60_000, intervalMs: 250 };

export const hasPatroni = [['patroni'], ['etcd'], [`${BIN_DIR}/postgres`]].every(
  ([program = '']) => spawnSync(program, ['--version']).status === 0,
);

type PatroniNode = Awaited<ReturnType<typeof startNode>>;

/** A primary and a synchronous replica that Patroni fails over, until the test ends. */
export async function startOwnPatroni() {
  const dir = await mkdtemp(join(tmpdir(), 'latchkey-patroni-'));
  // As root, PostgreSQL runs as another user.
  const ids = process.getuid?.() === 0 ? { uid: idOf('-u'), gid: idOf('-g') } : {};
  await chmod(dir, 0o777);
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const etcd = await startEtcd(join(dir, 'etcd'));
  const nodes: PatroniNode[] = [];
  for (const name of ['one', 'two']) nodes.push(await startNode(name, dir, etcd, ids));
  const hosts = nodes.map(({ port }) => `127.0.0.1:${port}`).join(',');
  const url = `postgres://postgres:watchword@${hosts}/postgres?target_session_attrs=read-write`;
  const primary = async () => {
    const roles = await Promise.all(nodes.map(async (node) => [node, await askNode(node.port, 'pg_is_in_recovery()')] as const));
    return roles.find(([, isReplica]) => isReplica === false)?.[0];
  };
  /** Waits for a primary with a synchronous replica. */
  const settle = () =>
    eventually(async () => {
      const node = await primary();
      const count = `(select count(*)::int from pg_stat_replication where sync_state = 'sync')`;
      expect(node && (await askNode(node.port, count))).toBe(1);
      return node as PatroniNode;
    }, PATIENCE);
  return { url, primary, settle };
}

const idOf = (flag: string) => Number(spawnSync('id', [flag, 'postgres'], { encoding: 'utf8' }).stdout);

/** The value of an expression on one server; undefined while it does not respond. */
async function askNode(port: number, expression: string): Promise<unknown> {
  const client = new Client({
    connectionString: `postgres://postgres:watchword@127.0.0.1:${port}/postgres`,
    ...{ connectionTimeoutMillis: 1_000, query_timeout: 1_000 },
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return (await client.query(`select ${expression} as value`)).rows[0].value;
  } catch {
    return undefined;
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function startEtcd(dataDir: string): Promise<string> {
  const [client, peer] = [`http://127.0.0.1:${await findFreePort()}`, `http://127.0.0.1:${await findFreePort()}`];
  const addresses = [`--listen-client-urls=${client}`, `--advertise-client-urls=${client}`, `--listen-peer-urls=${peer}`];
  const initial = [`--initial-advertise-peer-urls=${peer}`, `--initial-cluster=default=${peer}`];
  const etcd = spawn('etcd', [`--data-dir=${dataDir}`, ...addresses, ...initial], { stdio: 'ignore' });
  endWithTest(etcd);
  await eventually(async () => expect((await fetch(`${client}/health`)).ok).toBe(true), PATIENCE);
  return new URL(client).host;
}

async function startNode(name: string, dir: string, etcd: string, ids: object) {
  const [port, restPort] = [await findFreePort(), await findFreePort()];
  const own = join(dir, name);
  await mkdir(own);
  await chmod(own, 0o777);
  const configuration = {
    ...{ scope: 'latchkey', name, etcd3: { host: etcd } },
    restapi: { listen: `127.0.0.1:${restPort}`, connect_address: `127.0.0.1:${restPort}` },
    bootstrap: {
      dcs: {
        ...{ ttl: 20, loop_wait: 1, retry_timeout: 3, synchronous_mode: true, primary_start_timeout: 0 },
        postgresql: { use_pg_rewind: true, parameters: { max_connections: 200 } },
      },
      initdb: [{ encoding: 'UTF8' }, 'data-checksums'],
      pg_hba: ['host all all 127.0.0.1/32 scram-sha-256', 'host replication all 127.0.0.1/32 scram-sha-256'],
    },
    postgresql: {
      ...{ listen: `127.0.0.1:${port}`, connect_address: `127.0.0.1:${port}`, data_dir: join(own, 'data'), bin_dir: BIN_DIR },
      pgpass: join(own, 'pgpass'),
      authentication: Object.fromEntries(
        ['superuser', 'replication', 'rewind'].map((role) => [role, { username: 'postgres', password: 'watchword' }]),
      ),
      parameters: { unix_socket_directories: own },
    },
  };
  // JSON is YAML.
  await writeFile(join(own, 'patroni.yml'), JSON.stringify(configuration));
  let patroni: ChildProcess;
  const start = () => {
    patroni = spawn('patroni', [join(own, 'patroni.yml')], { ...ids, cwd: own, stdio: 'ignore' });
    endWithTest(patroni);
  };
  /** Kills its PostgreSQL. Patroni hands over to the replica. */
  const killPostgres = async () => {
    const [pid] = (await readFile(join(own, 'data', 'postmaster.pid'), 'utf8').catch(() => '')).split('\n');
    if (pid) killIfRunning(Number(pid));
  };
  /** Kills Patroni and its PostgreSQL, as when a machine is lost. */
  const kill = async () => {
    const exited = once(patroni, 'exit');
    patroni.kill('SIGKILL');
    await exited;
    await killPostgres();
  };
  onTestFinished(async () => void (await killPostgres()));
  start();
  return { name, port, killPostgres, kill, start };
}

function killIfRunning(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

function endWithTest(child: ChildProcess): void {
  const exited = once(child, 'exit');
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await exited;
  });
}
