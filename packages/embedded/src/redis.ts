import { mkdir, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { explainFullDisk } from './disk-full.ts';
import { findFreePort } from './free-port.ts';
import { findRedis } from './redis-find.ts';
import { endLeftoverRedis, recordRedis } from './redis-leftover.ts';
import { pingRedis } from './redis-ping.ts';
import { redisEnv } from './redis-program.ts';
import { createPassword } from './secret-file.ts';
import { type ProcessExit, runServer, type ServerProcess } from './server-process.ts';
import { StartError } from './start-error.ts';
import { waitUntil } from './wait-until.ts';

export interface StartRedisOptions {
  /** The folder below which its data goes. It must exist. */
  dataDir: string;
  /** Where a downloaded server is kept; `<dataDir>/cache` by default. */
  cacheDir?: string | undefined;
  /** The port and password of an earlier start, for a restart under the same URL; new ones by default. */
  address?: { port: number; password: string } | undefined;
  /** `false` for tests: nothing is written to the disk. */
  durable?: boolean;
  /** How many numbered databases there are; Redis's own default, 16, otherwise. */
  databases?: number;
  /** How long the server may take until it answers, loading its data included; 60 seconds by default. */
  startTimeoutMs?: number;
  /** Gets a sentence for each step that takes long or deserves to be known. */
  onProgress?: ((line: string) => void) | undefined;
  /** Gets each line that the server logs. */
  onLog?: ((line: string) => void) | undefined;
  /** A folder that goes away with the server if this process does not live to remove it. */
  removeDirWhenOrphaned?: string | undefined;
}

/** A running Redis that listens on 127.0.0.1 only. */
export interface EmbeddedRedis {
  readonly pid: number;
  readonly port: number;
  readonly password: string;
  readonly url: string;
  /** Resolves when the server has ended, for whatever reason. */
  readonly exited: Promise<ProcessExit>;
  /** Ends the server; what it was told is on the disk then. */
  stop(): Promise<void>;
}

const PORT_TRIES_MAX = 5;

/**
 * Starts a Redis on the data of a folder, ending a leftover of an earlier run first. The caller holds the folder's lock
 * (`acquireDataDirLock`).
 *
 * @throws {StartError} when there is no Redis to be had, or it can't be started.
 */
export async function startRedis(options: StartRedisOptions): Promise<EmbeddedRedis> {
  const dir = join(await realpath(options.dataDir), 'redis');
  return explainFullDisk(dir, () => startIn(dir, options));
}

async function startIn(dir: string, options: StartRedisOptions): Promise<EmbeddedRedis> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const recordPath = join(dir, 'process.json');
  await endLeftoverRedis(recordPath, options.onProgress);
  const program = await findRedis({ cacheDir: options.cacheDir ?? join(dir, '..', 'cache'), onProgress: options.onProgress });

  const password = options.address?.password ?? createPassword();
  let wasSetAside = false;
  for (let tries = 1; ; tries += 1) {
    const port = options.address?.port ?? (await findFreePort());
    const configPath = await writeConfig(dir, { port, password, options });
    const server = await runServer({
      command: program.command,
      args: [configPath],
      ...(program.argv0 === undefined ? {} : { argv0: program.argv0 }),
      cwd: dir,
      env: redisEnv(program),
      stopSteps: [
        ['SIGTERM', 10_000],
        ['SIGKILL', 5_000],
      ],
      onLine: options.onLog,
      removeDirWhenOrphaned: options.removeDirWhenOrphaned,
    });
    const ready = await recordRedis(recordPath, server.pid)
      .then(() => waitForReady(server, { port, password, timeoutMs: options.startTimeoutMs ?? 60_000 }))
      .catch(async (err: unknown) => {
        // Unrecorded, it would hold the port and the data against every later start.
        await server.stop();
        throw err;
      });
    if (ready) return describe(server, { port, password, recordPath });
    await server.stop();
    const lines = server.recentLines();
    if (!wasSetAside && lines.some(saysDataDamaged)) {
      wasSetAside = true;
      await setAside(dir, options.onProgress);
      continue;
    }
    if (lines.some((line) => line.includes('Address already in use')) && tries < PORT_TRIES_MAX) {
      if (options.address) await waitUntil(() => false, { timeoutMs: 200 });
      continue;
    }
    throw new StartError(
      `Redis did not start: ${lines.findLast((line) => /# |\*\*\*|error/i.test(line)) ?? lines.at(-1) ?? 'it ended without a message'}.`,
      { detail: lines },
    );
  }
}

/** Whether Redis reports damaged data. Excludes errors of the system, where the data may be intact. */
function saysDataDamaged(line: string): boolean {
  return (
    /append only file|AOF|RDB|loading DB/.test(line) &&
    / # /.test(line) &&
    !/denied|Read-only|allocate|memory|space left|quota|Too many|Input\/output/i.test(line)
  );
}

/**
 * Renames the folder of data that Redis can't load, in the place of one that was renamed earlier. Limits begin anew then, and
 * jobs come again from the outbox and by the reconcilers.
 */
async function setAside(dir: string, onProgress?: (line: string) => void): Promise<void> {
  const damaged = `${dir}.damaged`;
  await rm(damaged, { recursive: true, force: true });
  await rename(dir, damaged);
  await mkdir(dir, { mode: 0o700 });
  onProgress?.(`The data of Redis is damaged. It is in ${damaged} now, and Redis starts empty. Nothing in it needs a backup.`);
}

/** The password stands in a file that only its owner may read: everybody on the machine can see a command line. */
async function writeConfig(
  dir: string,
  { port, password, options }: { port: number; password: string; options: StartRedisOptions },
): Promise<string> {
  const path = join(dir, 'redis.conf');
  const lines = [
    'bind 127.0.0.1',
    `port ${port}`,
    `requirepass ${password}`,
    `dir ${JSON.stringify(dir)}`,
    'daemonize no',
    // A queue's jobs must never be evicted; and they outlive a crash but for the last second.
    'maxmemory-policy noeviction',
    `appendonly ${options.durable === false ? 'no' : 'yes'}`,
    'save ""',
    ...(options.databases === undefined ? [] : [`databases ${options.databases}`]),
  ];
  await rm(path, { force: true });
  await writeFile(path, `${lines.join('\n')}\n`, { mode: 0o600, flag: 'wx' });
  return path;
}

async function waitForReady(
  server: ServerProcess,
  { port, password, timeoutMs }: { port: number; password: string; timeoutMs: number },
): Promise<boolean> {
  let ended = false;
  void server.exited.then(() => {
    ended = true;
  });
  const result = await waitUntil(async () => (ended ? 'ended' : (await pingRedis(port, password)) && 'ready'), {
    timeoutMs,
    intervalMs: 10,
  });
  return result === 'ready';
}

function describe(
  server: ServerProcess,
  { port, password, recordPath }: { port: number; password: string; recordPath: string },
): EmbeddedRedis {
  return {
    pid: server.pid,
    port,
    password,
    url: `redis://:${password}@127.0.0.1:${port}`,
    exited: server.exited,
    stop: async () => {
      await server.stop();
      await rm(recordPath, { force: true });
    },
  };
}
