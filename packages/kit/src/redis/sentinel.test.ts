import { eventually } from '@latchkey/testkit/eventually';
import { startOwnSentinel } from '@latchkey/testkit/redis/own-sentinel';
import { expect, it, onTestFinished } from 'vitest';
import { memoryLogger } from '../testing/memory-logger.ts';
import { checkRedisAccess, connectInBackground, createFailFastRedis } from './redis.ts';

it('a URL of sentinels leads to the primary, also after a failover', async () => {
  const { url, primary, onReplica, sentinelUrl } = await startOwnSentinel();
  await checkRedisAccess(url);
  await expect(checkRedisAccess(sentinelUrl)).rejects.toThrow(/leads to a Redis Sentinel: use redis\+sentinel:/);
  const redis = createFailFastRedis(url, memoryLogger().logger);
  onTestFinished(() => redis.disconnect());
  await connectInBackground(redis);
  await eventually(() => redis.set('before', 'the failover'));
  await eventually(async () => expect(await onReplica.get('before')).toBe('the failover'));
  await primary.kill();
  await eventually(() => redis.set('after', 'the failover'), { timeoutMs: 15_000 });
  expect(await onReplica.mget('before', 'after')).toEqual(['the failover', 'the failover']);
}, 40_000);
