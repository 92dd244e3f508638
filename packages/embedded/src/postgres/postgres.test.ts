import { spawn } from 'node:child_process';
import { chown, cp, mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { waitUntil } from '../process/wait-until.ts';
import { createDataDir, killHard, launch, spawnLauncher } from '../testing/launcher.ts';
import { type EmbeddedPostgres, startPostgres } from './postgres.ts';
import { isPostgresOf } from './postgres-leftover.ts';
import { ensureServiceDatabases } from './service-databases.ts';
import { isRoot, succeedsAs } from './system-user.ts';

const PATIENCE = { timeoutMs: 15_000 };

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

// One cluster serves all tests, as creating one takes seconds.
describe('an embedded PostgreSQL', { timeout: 60_000 }, () => {
  let dir: Awaited<ReturnType<typeof createDataDir>>;
  let password: string;
  const running: EmbeddedPostgres[] = [];
  const inCluster = (...names: string[]) => join(dir.path, 'postgres', 'data', ...names);
  const start = async (options: Partial<Parameters<typeof startPostgres>[0]> = {}) => {
    const postgres = await startPostgres({ dataDir: dir.path, durable: false, ...options });
    running.push(postgres);
    return postgres;
  };
  const stopAll = () => Promise.all(running.splice(0).map((postgres) => postgres.stop()));
  beforeAll(async () => {
    dir = await createDataDir();
    const postgres = await start();
    password = postgres.password;
    await query(postgres.url(), 'CREATE TABLE t AS SELECT 1 AS n');
    await stopAll();
  });
  afterEach(stopAll);
  afterAll(() => dir.remove());
  const expectRows = async (url: string) => expect(await query(url, 'SELECT n FROM t')).toEqual([{ n: 1 }]);

  it('is durable, listens on 127.0.0.1 only and asks for the password, which is stored for its owner only', async () => {
    const postgres = await start({ durable: true });
    const settings = `current_setting('fsync') AS fsync, current_setting('listen_addresses') AS host`;
    expect(await query(postgres.url(), `SELECT ${settings}`)).toEqual([{ fsync: 'on', host: '127.0.0.1' }]);
    await expect(query(postgres.url().replace(password, 'wrong'), 'SELECT 1')).rejects.toThrow('password authentication failed');
    expect((await stat(postgres.credentialsPath)).mode & 0o777).toBe(0o600);
  });

  it('restarts with its rows, its password and its URL after a kill', async () => {
    const first = await start({ durable: true });
    process.kill(first.pid, 'SIGKILL');
    expect(await first.exited).toMatchObject({ signal: 'SIGKILL', asked: false });
    const second = await start({ durable: true, port: first.port });
    expect(second.url()).toBe(first.url());
    await expectRows(second.url());
  });

  it('knows upper and lower case beyond ASCII, and orders by code point', async () => {
    const { url } = await start();
    expect(await query(url(), `SELECT 'ÄÖ' ILIKE 'äö' AS alike, 'Z' < 'a' AS ordered`)).toEqual([{ alike: true, ordered: true }]);
  });

  it('ends with its launcher, also when that is killed', async () => {
    const launcher = await launch('postgres', dir.path);
    await killHard(launcher.process);
    expect(await waitUntil(() => !isPostgresOf(launcher.pid, inCluster()), PATIENCE)).toBe(true);
  });

  it.runIf(process.platform === 'linux')('replaces the server that a killed launcher left, with its rows', async () => {
    const launcher = await launch('postgres', dir.path);
    await launcher.killLeavingServer();
    expect(isPostgresOf(launcher.pid, inCluster())).toBe(true);
    const lines: string[] = [];
    const postgres = await start({ onProgress: (line) => lines.push(line) });
    expect(isPostgresOf(launcher.pid, inCluster())).toBe(false);
    expect(lines).toEqual([expect.stringContaining(`pid ${launcher.pid}`)]);
    await expectRows(postgres.url());
  });

  it('starts when the pid in a stale lock file belongs to another process, and leaves that alone', async () => {
    const first = await start();
    const pidFile = await readFile(inCluster('postmaster.pid'), 'utf8');
    process.kill(first.pid, 'SIGKILL');
    await first.exited;
    // PostgreSQL itself takes a process of the same user for a rival.
    const { uid, gid } = await stat(inCluster());
    const stranger = spawn('sleep', ['60'], { stdio: 'ignore', cwd: '/', ...(isRoot() && { uid, gid }) });
    await writeFile(inCluster('postmaster.pid'), pidFile.replace(/^\d+/, String(stranger.pid)));
    await start();
    expect(stranger.exitCode ?? stranger.signalCode).toBeNull();
    await killHard(stranger);
  });

  it('starts over an empty lock file', async () => {
    await writeFile(inCluster('postmaster.pid'), '');
    await start();
  });

  it('names the disk that is full, and starts once there is space', async () => {
    await rm(inCluster('postmaster.opts'));
    await symlink('/dev/full', inCluster('postmaster.opts'));
    await expect(start()).rejects.toThrow(`The disk that holds ${join(dir.path, 'postgres')} is full. Free some space`);
    await rm(inCluster('postmaster.opts'));
    await start();
  });

  it('rejects a database without its password file, and one of another version', async () => {
    const path = join(dir.path, 'postgres', 'credentials.json');
    await rename(path, `${path}.away`);
    await expect(start()).rejects.toThrow('restore that file');
    await rename(`${path}.away`, path);
    await writeFile(inCluster('PG_VERSION'), '17\n');
    await expect(start()).rejects.toThrow('holds a database of PostgreSQL version 17');
    await writeFile(inCluster('PG_VERSION'), '18\n');
  });

  it('starts after the creation of the cluster was interrupted', async () => {
    const home = join(dir.path, 'interrupted', 'postgres');
    await mkdir(join(dir.path, 'interrupted'));
    const launcher = spawnLauncher('postgres', join(dir.path, 'interrupted'));
    const hasBegun = async () => (await readdir(home).catch(() => [])).some((name) => name.startsWith('initdb-'));
    expect(await waitUntil(hasBegun, { ...PATIENCE, intervalMs: 1 })).toBe(true);
    await killHard(launcher);
    expect(await readdir(home)).not.toContain('data');
    await start({ dataDir: join(dir.path, 'interrupted') });
  });

  it('gives each service a role that owns its schema, is closed to the others, and stays the same', async () => {
    const postgres = await start();
    const before = await ensureServiceDatabases(postgres, ['identity', 'apps']);
    await query(before.identity, 'CREATE TABLE account (id int)');
    const where = `SELECT schemaname, tableowner FROM pg_tables WHERE tablename = 'account'`;
    expect(await query(before.identity, where)).toEqual([{ schemaname: 'identity', tableowner: 'identity' }]);
    for (const sql of ['SELECT * FROM identity.account', 'CREATE TABLE public.t (id int)', 'CREATE TABLE identity.t (id int)']) {
      await expect(query(before.apps, sql)).rejects.toThrow('permission denied for schema');
    }
    const after = await ensureServiceDatabases(postgres, ['identity', 'apps', 'files']);
    expect(after).toMatchObject(before);
    expect(await query(after.files, 'SELECT current_schema AS schema')).toEqual([{ schema: 'files' }]);
  });

  describe.runIf(isRoot())('as root', () => {
    const otherUser = { uid: 65_534, gid: 65_534 };

    // In a checkout below /root, that user can't even run Node.js.
    it.runIf(succeedsAs(otherUser, process.execPath, ['--version']))('runs as the owner of the data', async () => {
      const home = join(dir.path, 'home');
      await mkdir(home);
      await chown(home, otherUser.uid, otherUser.gid);
      await (await launch('postgres', home, otherUser)).killLeavingServer();
      const { pid } = await start({ dataDir: home });
      expect((await stat(`/proc/${pid}`)).uid).toBe(otherUser.uid);
    });

    it('moves data to where its user can reach it, once; it follows its folder, and does not serve a copy of that', async () => {
      const [first, moved, copy] = ['first', 'moved', 'copy'].map((name) => join(dir.path, 'closed', name)) as [
        string,
        string,
        string,
      ];
      await mkdir(join(dir.path, 'closed'), { mode: 0o700 });
      await mkdir(first);
      const lines: string[] = [];
      const options = { sharedRoot: join(dir.path, 'shared'), onProgress: (line: string) => lines.push(line) };
      const postgres = await start({ ...options, dataDir: first });
      await query(postgres.url(), 'CREATE TABLE t AS SELECT 1 AS n');
      await postgres.stop();
      await rename(first, moved);
      await expectRows((await start({ ...options, dataDir: moved })).url());
      expect(lines.filter((line) => line.includes(options.sharedRoot))).toHaveLength(1);
      await cp(moved, copy, { recursive: true });
      await expect(start({ ...options, dataDir: copy })).rejects.toThrow(`${copy} is a copy of ${moved}`);
    });
  });
});
