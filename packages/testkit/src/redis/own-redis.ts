import { fileURLToPath } from 'node:url';
import { startRedis } from '@latchkey/embedded/redis/redis';
import type { Redis } from 'ioredis';
import { withRedis } from '../postgres/with-client.ts';
import { type OwnServer, startOwnServer } from '../process/own-server.ts';

export interface OwnRedis extends OwnServer {
  /** Removes all data. */
  empty(): Promise<void>;
  /** Runs commands on a new connection. */
  ask<T>(question: (redis: Redis) => Promise<T>): Promise<T>;
}

/** A Redis that had to be downloaded is stored with the other dependencies. */
export const REDIS_CACHE_DIR = fileURLToPath(new URL('../../../../node_modules/.cache/latchkey', import.meta.url));

/** Starts a Redis in about 100 ms. */
export async function startOwnRedis(): Promise<OwnRedis> {
  const server = await startOwnServer<Awaited<ReturnType<typeof startRedis>>>(
    (dataDir, address) =>
      startRedis({ dataDir, cacheDir: REDIS_CACHE_DIR, removeDirWhenOrphaned: dataDir, ...(address && { address }) }),
    ({ url }) => url,
  );
  const ask: OwnRedis['ask'] = (question) => withRedis(server.url, question);
  return { ...server, ask, empty: () => ask(async (redis) => void (await redis.flushall())) };
}
