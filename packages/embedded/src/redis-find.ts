import { downloadRedis, findDownloadedRedis } from './redis-download.ts';
import { isUsable, type RedisProgram } from './redis-program.ts';
import { StartError } from './start-error.ts';
import { adviseRedis, readSystem } from './system.ts';

/**
 * What to look for on the PATH. Debian's `redis-tools` holds the whole server under the third name: `redis-server` there
 * is a link to it, and the program goes by the name it is called by.
 */
const CANDIDATES: readonly RedisProgram[] = [
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
export async function findRedis({ cacheDir, onProgress }: FindRedisOptions): Promise<RedisProgram> {
  const installed = CANDIDATES.find(isUsable);
  if (installed) return installed;
  const downloaded = await findDownloadedRedis(cacheDir);
  if (downloaded && isUsable(downloaded)) return downloaded;
  try {
    const fresh = await downloadRedis({ cacheDir, onProgress });
    if (isUsable(fresh)) return fresh;
    throw new Error('what was downloaded does not run');
  } catch (cause) {
    const why = `There is no Redis on this machine and none could be downloaded (${(cause as Error).message})`;
    throw new StartError(`${why}: ${adviseRedis(await readSystem())}, or set REDIS_URL.`, { cause });
  }
}
