import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isRedisLeft } from './redis-leftover.ts';

/**
 * The URL of the Redis that another process runs on a data folder.
 *
 * @returns undefined while none runs there
 */
export async function findRunningRedis(dataDir: string): Promise<string | undefined> {
  const dir = join(dataDir, 'redis');
  if (!(await isRedisLeft(join(dir, 'process.json')))) return undefined;
  const config = await readFile(join(dir, 'redis.conf'), 'utf8').catch(() => '');
  const [, port] = /^port (\d+)$/m.exec(config) ?? [];
  const [, password] = /^requirepass (\S+)$/m.exec(config) ?? [];
  if (port === undefined || password === undefined) return undefined;
  return `redis://:${password}@127.0.0.1:${port}`;
}
