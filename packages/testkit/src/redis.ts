import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { inject } from 'vitest';
import './provided.ts';

/** A part of the tests' Redis that nobody else uses. */
export interface TestRedis {
  /** The URL of a numbered database of its own. */
  readonly url: string;
  /** A prefix of its own, ending in a colon: channels are shared by all databases. */
  readonly keyPrefix: string;
  /** Removes everything in it. */
  flush(): Promise<void>;
}

/** Takes an empty database of the tests' Redis; each call gives another. */
export async function testRedis(): Promise<TestRedis> {
  const { redisUrl, redisDatabases } = inject('latchkeyTestServers');
  const taken = await withRedis(redisUrl, (redis) => redis.incr('latchkey-testkit:databases'));
  // Database 0 holds the counter.
  const url = `${redisUrl}/${1 + ((taken - 1) % (redisDatabases - 1))}`;
  const flush = () => withRedis(url, async (redis) => void (await redis.flushdb()));
  await flush();
  return { url, keyPrefix: `test-${randomBytes(6).toString('hex')}:`, flush };
}

async function withRedis<T>(url: string, use: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url, { maxRetriesPerRequest: 1, commandTimeout: 5_000 });
  redis.on('error', () => {});
  try {
    return await use(redis);
  } finally {
    redis.disconnect();
  }
}
