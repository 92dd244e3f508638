import { findFreePort } from '@latchkey/testkit/free-port';
import { testRedis } from '@latchkey/testkit/redis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connectInBackground, createFailFastRedis } from './redis.ts';
import { memoryLogger } from './testing/memory-logger.ts';
import { startProxy } from './testing/tcp-proxy.ts';

function open(url: string) {
  const { logger, lines } = memoryLogger();
  const redis = createFailFastRedis(url, logger);
  onTestFinished(() => redis.disconnect());
  return { redis, messages: () => lines.map(({ msg }) => msg) };
}

async function rejection(call: Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await expect(call).rejects.toThrow();
  return performance.now() - startedAt;
}

describe('a fail-fast Redis', () => {
  it('answers while Redis does', async () => {
    const { redis } = open((await testRedis()).url);
    await connectInBackground(redis);
    await redis.set('key', 'value');
    expect(await redis.get('key')).toBe('value');
  });

  it('rejects commands at once while nobody listens, and logs that once', async () => {
    const { redis, messages } = open(`redis://127.0.0.1:${await findFreePort()}`);
    await connectInBackground(redis);
    for (let i = 0; i < 3; i += 1) expect(await rejection(redis.get('key'))).toBeLessThan(1_000);
    await expect.poll(() => redis.status, { timeout: 3_000 }).toBe('reconnecting');
    expect(messages()).toEqual(['redis is unreachable']);
  });

  it('says that it is refused where the password is wrong, and that once', async () => {
    const url = new URL((await testRedis()).url);
    const { redis, messages } = open(Object.assign(url, { username: 'nobody', password: 'wrong' }).href);
    await connectInBackground(redis);
    let tries = 0;
    redis.on('reconnecting', () => {
      tries += 1;
    });
    await expect.poll(() => tries, { timeout: 5_000 }).toBeGreaterThan(2);
    expect(messages()).toEqual(['redis refuses the user or the password of REDIS_URL']);
  });

  it('rejects commands within a second when Redis freezes, and answers again when it goes on', async () => {
    const proxy = await startProxy((await testRedis()).url);
    const { redis } = open(proxy.url);
    await connectInBackground(redis);
    await redis.mset('a', '1', 'b', '2');
    proxy.freeze();
    const waits = await Promise.all(Array.from({ length: 10 }, () => rejection(redis.get('a'))));
    expect(Math.max(...waits)).toBeLessThan(1_000);
    proxy.thaw();
    await expect.poll(() => redis.get('b').catch(() => undefined), { timeout: 10_000 }).toBe('2');
    expect(await redis.get('a')).toBe('1');
  });

  it('replaces a connection on which nothing comes back any more', async () => {
    const proxy = await startProxy((await testRedis()).url);
    const { redis, messages } = open(proxy.url);
    await connectInBackground(redis);
    await redis.set('key', 'value');
    proxy.abandon();
    await expect.poll(() => redis.get('key').catch(() => undefined), { timeout: 10_000 }).toBe('value');
    expect(proxy.accepted()).toBe(2);
    expect(messages()).toEqual(['redis is unreachable', 'redis is reachable again']);
  });

  it('comes back after its connection was cut', async () => {
    const proxy = await startProxy((await testRedis()).url);
    const { redis, messages } = open(proxy.url);
    await connectInBackground(redis);
    await redis.set('key', 'value');
    proxy.reset();
    await expect.poll(() => redis.get('key').catch(() => undefined), { timeout: 10_000 }).toBe('value');
    expect(messages()).toEqual(['redis is unreachable', 'redis is reachable again']);
  });
});
