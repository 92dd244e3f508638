import { spawnSync } from 'node:child_process';
import { downloadRedis, findDownloadedRedis } from './redis-download.ts';
import { StartError } from './start-error.ts';

/** The oldest version whose behaviour the queues and limits rely on. */
const MAJOR_MIN = 6;

/** A program that runs as a Redis server, and how to call it. */
export interface RedisBinary {
  readonly command: string;
  /** The name it must be called by, where one program does several things. */
  readonly argv0?: string;
  /** Where its libraries lie that the system does not have. */
  readonly libraryPath?: string;
}

/**
 * Debian's `redis-tools` holds the whole server under this name: `redis-server` there is a link to it, and the program
 * goes by the name it is called by.
 */
const CANDIDATES: readonly RedisBinary[] = [
  { command: 'redis-server' },
  { command: 'valkey-server' },
  { command: 'redis-check-rdb', argv0: 'redis-server' },
];

export interface FindRedisOptions {
  /** A folder to keep a downloaded server in. */
  cacheDir: string;
  onProgress?: ((line: string) => void) | undefined;
}

/**
 * Finds a Redis or Valkey server on the PATH, else one downloaded before, else downloads one.
 *
 * @throws {StartError} when there is none to be had here.
 */
export async function findRedis({ cacheDir, onProgress }: FindRedisOptions): Promise<RedisBinary> {
  const installed = CANDIDATES.find(runs);
  if (installed) return installed;
  const downloaded = await findDownloadedRedis(cacheDir);
  if (downloaded && runs(downloaded)) return downloaded;
  try {
    const fresh = await downloadRedis({ cacheDir, onProgress });
    if (runs(fresh)) return fresh;
    throw new Error('what was downloaded does not run');
  } catch (cause) {
    throw new StartError(
      `There is no Redis on this machine and none could be downloaded (${(cause as Error).message}): install redis-server or valkey, or set REDIS_URL.`,
      { cause },
    );
  }
}

/** The environment for a server found by {@link findRedis}. */
export function redisEnv({ libraryPath }: RedisBinary): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' };
  if (libraryPath !== undefined) env.LD_LIBRARY_PATH = libraryPath;
  return env;
}

function runs(binary: RedisBinary): boolean {
  const { status, stdout } = spawnSync(binary.command, ['--version'], {
    encoding: 'utf8',
    env: redisEnv(binary),
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: 10_000,
    ...(binary.argv0 === undefined ? {} : { argv0: binary.argv0 }),
  });
  const major = /^(?:Redis|Valkey) server v=(\d+)/.exec(stdout ?? '')?.[1];
  return status === 0 && Number(major) >= MAJOR_MIN;
}
