import { randomBytes } from 'node:crypto';
import { inject } from 'vitest';
import { withRedis } from '../postgres/with-client.ts';
import '../vitest/test-servers.ts';

export interface TestRedis {
  readonly url: string;
  /** A unique prefix, ending in a colon, for channels, which all databases share. */
  readonly keyPrefix: string;
  flush(): Promise<void>;
}

/** Takes the next database of the tests' Redis, emptied. */
export async function testRedis(): Promise<TestRedis> {
  const { redisUrl, redisDatabases } = inject('latchkeyTestServers');
  const taken = await withRedis(redisUrl, (redis) => redis.incr('latchkey-testkit:databases'));
  // Database 0 holds the counter.
  const url = `${redisUrl}/${1 + ((taken - 1) % (redisDatabases - 1))}`;
  const flush = () => withRedis(url, async (redis) => void (await redis.flushdb()));
  await flush();
  return { url, keyPrefix: `test-${randomBytes(6).toString('hex')}:`, flush };
}
