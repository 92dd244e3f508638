import { randomUUID } from 'node:crypto';
import { findFreePort } from '@latchkey/testkit/free-port';
import { testRedis } from '@latchkey/testkit/redis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { checkRedisAccess, connectInBackground, createFailFastRedis } from './redis.ts';
import { memoryLogger } from './testing/memory-logger.ts';
import { startTcpServer } from './testing/servers.ts';
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

describe('access to Redis', () => {
  const withUser = (url: string, username: string) => Object.assign(new URL(url), { username, password: 'swordfish' }).href;
  /** One that says the same to everything. */
  const saying = async (words: string) => {
    const { port } = await startTcpServer((socket) => socket.on('data', () => socket.write(words)));
    return `redis://127.0.0.1:${port}`;
  };

  it('is there where Redis answers', async () => {
    await checkRedisAccess((await testRedis()).url);
  });

  it('is not there with a wrong user or password, without the right to a command, or without a password, and that is told without it', async () => {
    const { url } = await testRedis();
    const barred = `test-${randomUUID()}`;
    const { redis: owner } = open(url);
    await connectInBackground(owner);
    await owner.call('ACL', 'SETUSER', barred, 'on', '>swordfish', '-@all');
    onTestFinished(async () => void (await owner.call('ACL', 'DELUSER', barred)));
    for (const [refused, word] of [
      [withUser(url, 'nobody'), 'WRONGPASS'],
      [withUser(url, barred), 'NOPERM'],
      [await saying('-NOAUTH Authentication required.\r\n'), 'NOAUTH'],
    ] as const) {
      const { message } = await checkRedisAccess(refused).then(
        () => new Error('It is let in'),
        (err: Error) => err,
      );
      const start = `redis refuses the user or the password of REDIS_URL, at ${new URL(refused).host}: ${word} `;
      expect(message.slice(0, start.length)).toBe(start);
      expect(message).not.toContain('swordfish');
    }
  });

  it('is not asked for where Redis is away, silent or not ready', async () => {
    const { port, close } = await startTcpServer(() => undefined);
    await checkRedisAccess(`redis://127.0.0.1:${port}`);
    await close();
    await checkRedisAccess(`redis://127.0.0.1:${port}`);
    await checkRedisAccess(await saying('-LOADING Redis is loading the dataset in memory\r\n'));
  });
});
