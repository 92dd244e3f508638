import { mkdir, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { explainFullDisk } from '../process/disk-full.ts';
import { findFreePort } from '../process/free-port.ts';
import { createPassword } from '../process/secret-file.ts';
import { type DataServerOptions, runServer, waitUntilReady } from '../process/server-process.ts';
import { StartError } from '../process/start-error.ts';
import { waitUntil } from '../process/wait-until.ts';
import { findRedis, redisEnv } from './redis-program.ts';
import { endLeftoverRedis, pingRedis, type RedisAddress, redisUrl } from './running-redis.ts';

export interface StartRedisOptions extends DataServerOptions {
  /** Folder of a downloaded server; `<dataDir>/cache` by default. */
  cacheDir?: string | undefined;
  /** The address of an earlier start, for a restart with the same URL; a new one by default. */
  address?: RedisAddress | undefined;
  databases?: number;
}

export type EmbeddedRedis = Awaited<ReturnType<typeof startRedis>>;

const PORT_TRIES_MAX = 5;
/** Loading the data included. */
const START_TIMEOUT_MS = 60_000;
const STOP_STEPS = [
  ['SIGTERM', 10_000],
  ['SIGKILL', 5_000],
] as const;

/**
 * Starts a Redis on the data of a folder, after ending a leftover of an earlier run. The caller
 * holds the folder's lock (`acquireDataDirLock`).
 *
 * @throws {DiskFullError} when its disk is full
 * @throws {StartError} when Redis is missing or can't be started
 */
export async function startRedis(options: StartRedisOptions) {
  const dir = join(await realpath(options.dataDir), 'redis');
  return explainFullDisk(dir, () => startIn(dir, options));
}

async function startIn(dir: string, options: StartRedisOptions) {
  const { address: given, cacheDir = join(dir, '..', 'cache'), onProgress } = options;
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await endLeftoverRedis(dir, onProgress);
  const program = await findRedis(cacheDir, onProgress);
  let wasSetAside = false;
  for (let tries = 1; ; tries += 1) {
    const address = given ?? { port: await findFreePort(), password: createPassword() };
    const server = await runServer({
      command: program.command,
      argv0: program.argv0,
      args: [await writeConfig(dir, address, options)],
      cwd: dir,
      env: redisEnv(program),
      stopSteps: STOP_STEPS,
      onLine: options.onLog,
      removeDirWhenOrphaned: options.removeDirWhenOrphaned,
    });
    if (await waitUntilReady(server, () => pingRedis(address), START_TIMEOUT_MS)) {
      return { ...server, port: address.port, password: address.password, url: redisUrl(address) };
    }
    await server.stop();
    const lines = server.recentLines();
    if (!wasSetAside && lines.some(reportsDamage)) {
      wasSetAside = true;
      await setAside(dir, onProgress);
    } else if (lines.some((line) => line.includes('Address already in use')) && tries < PORT_TRIES_MAX) {
      if (given) await waitUntil(() => false, { timeoutMs: 200 });
    } else {
      const reason = lines.findLast((line) => /# |\*\*\*|error/i.test(line)) ?? lines.at(-1) ?? 'it ended without a message';
      throw new StartError(`Redis did not start: ${reason}.`, { detail: lines });
    }
  }
}

/** True if Redis reports damaged data, and not a system error with which the data may be intact. */
function reportsDamage(line: string): boolean {
  return (
    /append only file|AOF|RDB|loading DB/.test(line) &&
    / # /.test(line) &&
    !/denied|Read-only|allocate|memory|space left|quota|Too many|Input\/output/i.test(line)
  );
}

/**
 * Renames the folder of data that Redis can't load, and removes one that was renamed earlier.
 * Limits restart; the outbox and the reconcilers add jobs again.
 */
async function setAside(dir: string, onProgress?: (line: string) => void): Promise<void> {
  const damaged = `${dir}.damaged`;
  await rm(damaged, { recursive: true, force: true });
  await rename(dir, damaged);
  await mkdir(dir, { mode: 0o700 });
  onProgress?.(`The data of Redis is damaged. It is in ${damaged} now, and Redis starts empty. Nothing in it needs a backup.`);
}

/** A file, as every user of the machine sees command lines. */
async function writeConfig(dir: string, { port, password }: RedisAddress, options: StartRedisOptions): Promise<string> {
  const path = join(dir, 'redis.conf');
  const lines = [
    'bind 127.0.0.1',
    `port ${port}`,
    `requirepass ${password}`,
    `dir ${JSON.stringify(dir)}`,
    'daemonize no',
    // Jobs are never evicted, and survive a crash but for the last second.
    'maxmemory-policy noeviction',
    `appendonly ${options.durable === false ? 'no' : 'yes'}`,
    'save ""',
    ...(options.databases === undefined ? [] : [`databases ${options.databases}`]),
  ];
  await rm(path, { force: true });
  await writeFile(path, `${lines.join('\n')}\n`, { mode: 0o600, flag: 'wx' });
  return path;
}
