import { spawnSync } from 'node:child_process';
import { downloadRedis, findDownloadedRedis, type RedisProgram } from './redis-download.ts';
import { StartError } from './start-error.ts';

/** The oldest version that the queues and limits work with. */
const MAJOR_MIN = 6;

/** On Debian, `redis-check-rdb` of the package `redis-tools` is the server too, by another name. */
const ON_PATH: readonly RedisProgram[] = [
  { command: 'redis-server' },
  { command: 'valkey-server' },
  { command: 'redis-check-rdb', argv0: 'redis-server' },
];

/**
 * Finds a Redis or Valkey server: on the PATH, else a downloaded one, else downloads one.
 *
 * @param cacheDir where a downloaded server is stored
 * @throws {StartError} when there is none and none can be downloaded
 */
export async function findRedis(cacheDir: string, onProgress?: (line: string) => void): Promise<RedisProgram> {
  const downloaded = await findDownloadedRedis(cacheDir);
  const found = [...ON_PATH, ...(downloaded ? [downloaded] : [])].find(isUsable);
  if (found) return found;
  try {
    const fresh = await downloadRedis(cacheDir, onProgress);
    if (isUsable(fresh)) return fresh;
    throw new Error('what was downloaded does not run');
  } catch (cause) {
    const why = `There is no Redis on this machine and none could be downloaded (${(cause as Error).message})`;
    throw new StartError(`${why}: install redis-server or valkey-server as the README says, or set REDIS_URL.`, { cause });
  }
}

/** The environment to run it in. */
export function redisEnv({ libraryPath }: RedisProgram): NodeJS.ProcessEnv {
  const env = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' };
  return libraryPath === undefined ? env : { ...env, LD_LIBRARY_PATH: libraryPath };
}

/** Whether it runs here and is new enough. */
function isUsable(program: RedisProgram): boolean {
  const { status, stdout } = spawnSync(program.command, ['--version'], {
    encoding: 'utf8',
    env: redisEnv(program),
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: 10_000,
    ...(program.argv0 !== undefined && { argv0: program.argv0 }),
  });
  const [, major] = /^(?:Redis|Valkey) server v=(\d+)/.exec(stdout ?? '') ?? [];
  return status === 0 && Number(major) >= MAJOR_MIN;
}
