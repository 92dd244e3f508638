import { spawn } from 'node:child_process';
import { chmod, chown, cp, mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type EmbeddedPostgres, startPostgres } from './postgres.ts';
import { identifyProcess, isRunning } from './process-identity.ts';
import { isRoot, succeedsAs } from './system-user.ts';
import { createDataDir, killHard, launch, spawnLauncher } from './testing/launcher.ts';
import { type WaitOptions, waitUntil } from './wait-until.ts';

const PATIENCE: WaitOptions = { timeoutMs: 15_000 };

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

describe('an embedded PostgreSQL', { timeout: 60_000 }, () => {
  let dir: Awaited<ReturnType<typeof createDataDir>>;
  let running: EmbeddedPostgres[];
  const start = async (options: Partial<Parameters<typeof startPostgres>[0]> = {}) => {
    const postgres = await startPostgres({ dataDir: dir.path, durable: false, ...options });
    running.push(postgres);
    return postgres;
  };
  beforeEach(async () => {
    dir = await createDataDir();
    running = [];
  });
  afterEach(async () => {
    await Promise.all(running.map((postgres) => postgres.stop()));
    await dir.remove();
  });

  it('keeps its rows and its password over a restart', async () => {
    const first = await start({ durable: true });
    await query(first.url(), 'CREATE TABLE t AS SELECT 1 AS n');
    await first.stop();
    const second = await start({ durable: true });
    expect(await query(second.url(), 'SELECT n FROM t')).toEqual([{ n: 1 }]);
    expect(second.password).toBe(first.password);
    expect(await query(second.url(), "SELECT current_setting('fsync') AS fsync")).toEqual([{ fsync: 'on' }]);
  });

  it('recovers what was committed when it is killed', async () => {
    const first = await start({ durable: true });
    await query(first.url(), 'CREATE TABLE t AS SELECT 1 AS n');
    process.kill(first.pid, 'SIGKILL');
    expect(await first.exited).toMatchObject({ signal: 'SIGKILL', asked: false });
    const second = await start();
    expect(await query(second.url(), 'SELECT n FROM t')).toEqual([{ n: 1 }]);
  });

  it('ends with its launcher, also when that is killed', async () => {
    const launcher = await launch('postgres', dir.path);
    const server = identifyProcess(launcher.pid);
    await launcher.kill();
    expect(await waitUntil(() => !server || !isRunning(server), PATIENCE)).toBe(true);
  });

  it.runIf(process.platform === 'linux')('replaces the server that a killed launcher left, with its rows', async () => {
    const launcher = await launch('postgres', dir.path);
    const leftover = identifyProcess(launcher.pid);
    await query(launcher.url, 'CREATE TABLE t AS SELECT 1 AS n');
    await launcher.killLeavingServer();
    expect(leftover && isRunning(leftover)).toBe(true);
    const lines: string[] = [];
    const postgres = await start({ onProgress: (line) => lines.push(line) });
    expect(leftover && isRunning(leftover)).toBe(false);
    expect(lines).toEqual([expect.stringContaining(`pid ${launcher.pid}`)]);
    expect(await query(postgres.url(), 'SELECT n FROM t')).toEqual([{ n: 1 }]);
  });

  it('starts when the pid in a stale lock file belongs to another process, and leaves that alone', async () => {
    const first = await start();
    const pidPath = join(dir.path, 'postgres', 'data', 'postmaster.pid');
    const pidFile = await readFile(pidPath, 'utf8');
    process.kill(first.pid, 'SIGKILL');
    await first.exited;
    // The same user as the server's: only then does PostgreSQL itself take the process for a rival.
    const { uid, gid } = await stat(join(dir.path, 'postgres', 'data'));
    const stranger = spawn('sleep', ['60'], { stdio: 'ignore', cwd: '/', ...(isRoot() ? { uid, gid } : {}) });
    try {
      await writeFile(pidPath, pidFile.replace(/^\d+/, String(stranger.pid)));
      await start();
      expect(stranger.exitCode ?? stranger.signalCode).toBeNull();
    } finally {
      await killHard(stranger);
    }
  });

  it('starts over an empty lock file', async () => {
    await (await start()).stop();
    await writeFile(join(dir.path, 'postgres', 'data', 'postmaster.pid'), '');
    await start();
  });

  it('starts after the making of the cluster was interrupted', async () => {
    const launcher = spawnLauncher('postgres', dir.path);
    const home = join(dir.path, 'postgres');
    const begun = () =>
      readdir(home).then(
        (names) => names.some((name) => name.startsWith('initdb-')),
        () => false,
      );
    expect(await waitUntil(begun, { ...PATIENCE, intervalMs: 1 })).toBe(true);
    await killHard(launcher);
    expect(await readdir(home)).not.toContain('data');
    const postgres = await start();
    expect(await query(postgres.url(), 'SELECT 1 AS n')).toEqual([{ n: 1 }]);
  });

  it.runIf(process.platform === 'linux')('names the disk that is full, and starts once there is space', async () => {
    await (await start()).stop();
    const home = join(dir.path, 'postgres');
    const written = join(home, 'data', 'postmaster.opts');
    await rm(written);
    await symlink('/dev/full', written);
    await expect(start()).rejects.toThrow(`is full; it holds ${home}. Free some space`);
    await rm(written);
    await start();
  });

  it('leaves a PostgreSQL of another folder alone', async () => {
    const other = await createDataDir();
    const others = await launch('postgres', other.path);
    try {
      await (await start()).stop();
      expect(await query(others.url, 'SELECT 1 AS n')).toEqual([{ n: 1 }]);
    } finally {
      await others.kill();
      const server = identifyProcess(others.pid);
      await waitUntil(() => !server || !isRunning(server), PATIENCE);
      await other.remove();
    }
  });

  it('takes its old port again when told to', async () => {
    const first = await start();
    await first.stop();
    expect((await start({ port: first.port })).url()).toBe(first.url());
  });

  it('listens on this machine only and asks for the password', async () => {
    const postgres = await start();
    const wrong = postgres.url().replace(postgres.password, 'wrong');
    await expect(query(wrong, 'SELECT 1')).rejects.toThrow('password authentication failed');
    const outside = Object.values(networkInterfaces())
      .flat()
      .find((address) => address?.family === 'IPv4' && !address.internal);
    if (outside)
      await expect(query(postgres.url().replace('127.0.0.1', outside.address), 'SELECT 1')).rejects.toThrow('ECONNREFUSED');
    expect((await stat(postgres.credentialsPath)).mode & 0o777).toBe(0o600);
  });

  it('knows upper and lower case beyond ASCII, and orders by code point', async () => {
    const postgres = await start();
    expect(await query(postgres.url(), `SELECT 'ÄÖ' ILIKE 'äö' AS alike, 'Z' < 'a' AS ordered`)).toEqual([
      { alike: true, ordered: true },
    ]);
  });

  it('says so when a database is there but its password is not', async () => {
    const postgres = await start();
    await postgres.stop();
    await writeFile(postgres.credentialsPath, 'null');
    await expect(start()).rejects.toThrow('restore that file');
  });

  it('refuses the data of another version', async () => {
    await (await start()).stop();
    await writeFile(join(dir.path, 'postgres', 'data', 'PG_VERSION'), '17\n');
    await expect(start()).rejects.toThrow('holds a database of PostgreSQL version 17');
  });

  describe.runIf(isRoot())('as root', () => {
    const nobody = { uid: 65_534, gid: 65_534 };

    // In a checkout below /root, that user could not even run Node.js.
    it.runIf(succeedsAs(nobody, process.execPath, ['--version']))(
      'runs as the owner of data that an ordinary user made',
      async () => {
        const home = join(dir.path, 'home');
        await mkdir(home);
        await chown(home, nobody.uid, nobody.gid);
        const launcher = await launch('postgres', home, nobody);
        await query(launcher.url, 'CREATE TABLE t AS SELECT 1 AS n');
        await launcher.killLeavingServer();
        const postgres = await start({ dataDir: home });
        expect((await stat(`/proc/${postgres.pid}`)).uid).toBe(nobody.uid);
        expect(await query(postgres.url(), 'SELECT n FROM t')).toEqual([{ n: 1 }]);
      },
    );

    it('moves the data to where its user can reach it, once, and finds it again', async () => {
      const closed = join(dir.path, 'closed');
      const sharedRoot = join(dir.path, 'shared');
      await mkdir(closed, { mode: 0o700 });
      const lines: string[] = [];
      const options = { dataDir: closed, sharedRoot, onProgress: (line: string) => lines.push(line) };
      const first = await start(options);
      await query(first.url(), 'CREATE TABLE t AS SELECT 1 AS n');
      await first.stop();
      const second = await start(options);
      expect(await query(second.url(), 'SELECT n FROM t')).toEqual([{ n: 1 }]);
      expect(lines.filter((line) => line.includes(sharedRoot))).toHaveLength(1);
      await second.stop();
      await chmod(closed, 0o711);
      expect(await query((await start(options)).url(), 'SELECT n FROM t')).toEqual([{ n: 1 }]);
    });

    it('lets moved data follow its folder, but does not share it with a copy of the folder', async () => {
      const [first, moved, copy] = ['first', 'moved', 'copy'].map((name) => join(dir.path, 'closed', name)) as [
        string,
        string,
        string,
      ];
      const options = { sharedRoot: join(dir.path, 'shared') };
      await mkdir(join(dir.path, 'closed'), { mode: 0o700 });
      await mkdir(first);
      const postgres = await start({ ...options, dataDir: first });
      await query(postgres.url(), 'CREATE TABLE t AS SELECT 1 AS n');
      await postgres.stop();
      await rename(first, moved);
      const again = await start({ ...options, dataDir: moved });
      expect(await query(again.url(), 'SELECT n FROM t')).toEqual([{ n: 1 }]);
      await cp(moved, copy, { recursive: true });
      await expect(start({ ...options, dataDir: copy })).rejects.toThrow(`${copy} is a copy of ${moved}`);
      expect(await query(again.url(), 'SELECT n FROM t')).toEqual([{ n: 1 }]);
    });
  });
});
