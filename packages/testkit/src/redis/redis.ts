import { inject } from 'vitest';
import { withRedis } from '../postgres/with-client.ts';
import '../vitest/test-servers.ts';

/** Takes the next database of the tests' Redis, emptied. */
export async function testRedis(): Promise<{ readonly url: string }> {
  const { redisUrl, redisDatabases } = inject('latchkeyTestServers');
  const taken = await withRedis(redisUrl, (redis) => redis.incr('latchkey-testkit:databases'));
  // Database 0 holds the counter.
  const url = `${redisUrl}/${1 + ((taken - 1) % (redisDatabases - 1))}`;
  await withRedis(url, (redis) => redis.flushdb());
  return { url };
}
