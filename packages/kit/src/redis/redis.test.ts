import { randomUUID } from 'node:crypto';
import { eventually } from '@latchkey/testkit/eventually';
import { findFreePort } from '@latchkey/testkit/network/free-port';
import { startOwnRedis } from '@latchkey/testkit/redis/own-redis';
import { testRedis } from '@latchkey/testkit/redis/redis';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { openTcpProxy } from '../testing/databases.ts';
import { memoryLogger } from '../testing/memory-logger.ts';
import { startTcpServer } from '../testing/servers.ts';
import { checkRedisAccess, connectInBackground, createFailFastRedis, createSubscriber } from './redis.ts';

const ownRedis = await startOwnRedis();
afterAll(() => ownRedis.remove());

const OUTAGE = ['redis is unreachable', 'redis is reachable again'];

async function open(url: string) {
  const { logger, messages } = memoryLogger();
  const redis = createFailFastRedis(url, logger);
  onTestFinished(() => redis.disconnect());
  await connectInBackground(redis);
  return { redis, messages };
}

async function proxied() {
  const proxy = await openTcpProxy((await testRedis()).url);
  return { proxy, ...(await open(proxy.url)) };
}

async function rejection(call: Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await expect(call).rejects.toThrow();
  return performance.now() - startedAt;
}

describe('a fail-fast connection', () => {
  it('rejects commands immediately while Redis is down, and logs that once', async () => {
    const { redis, messages } = await open(`redis://127.0.0.1:${await findFreePort()}`);
    for (let i = 0; i < 3; i += 1) expect(await rejection(redis.get('key'))).toBeLessThan(1_000);
    await eventually(() => redis.status === 'reconnecting');
    expect(messages()).toEqual(['redis is unreachable']);
  });

  it('logs a wrong password once, as a rejection', async () => {
    const url = Object.assign(new URL((await testRedis()).url), { username: 'unknown', password: 'wrong' });
    const { redis, messages } = await open(url.href);
    let attempts = 0;
    redis.on('reconnecting', () => {
      attempts += 1;
    });
    await eventually(() => attempts > 2);
    expect(messages()).toEqual(['redis rejects the user or the password of its URL']);
  });

  it('rejects commands within a second while Redis is frozen, and works again afterwards', async () => {
    const { proxy, redis } = await proxied();
    await redis.mset('a', '1', 'b', '2');
    proxy.freeze();
    const waits = await Promise.all(Array.from({ length: 10 }, () => rejection(redis.get('a'))));
    expect(Math.max(...waits)).toBeLessThan(1_000);
    await proxy.restore();
    await eventually(async () => expect(await redis.get('b')).toBe('2'), { timeoutMs: 10_000 });
    expect(await redis.get('a')).toBe('1');
  });

  it('replaces a connection that Redis no longer answers', async () => {
    const { proxy, redis, messages } = await proxied();
    await redis.set('key', 'value');
    proxy.abandon();
    await eventually(async () => expect(await redis.get('key')).toBe('value'), { timeoutMs: 10_000 });
    expect(messages()).toEqual(OUTAGE);
  });
});

describe('the check of access', () => {
  const withUser = (url: string, username: string) => Object.assign(new URL(url), { username, password: 'swordfish' }).href;
  /** A server with one response to everything. */
  const saying = async (words: string) => {
    const { port } = await startTcpServer((socket) => socket.on('data', () => words && socket.write(words)));
    return `redis://127.0.0.1:${port}`;
  };

  it('fails where Redis rejects the user, its rights or a missing password, and hides the password', async () => {
    const { url } = await testRedis();
    const barred = `test-${randomUUID()}`;
    const { redis: owner } = await open(url);
    await owner.call('ACL', 'SETUSER', barred, 'on', '>swordfish', '-@all');
    onTestFinished(async () => void (await owner.call('ACL', 'DELUSER', barred)));
    for (const [refused, word] of [
      [withUser(url, 'unknown'), 'WRONGPASS'],
      [withUser(url, barred), 'NOPERM'],
      [await saying('-NOAUTH Authentication required.\r\n'), 'NOAUTH'],
    ] as const) {
      const err = await checkRedisAccess(refused).catch((failure: Error) => failure);
      const start = `redis rejects the user or the password of REDIS_URL, at ${new URL(refused).host}: ${word} `;
      expect(err?.message.slice(0, start.length)).toBe(start);
      expect(err?.message).not.toContain('swordfish');
    }
  });

  it('fails where Redis lacks the database of the URL', async () => {
    const url = new URL('/99999', (await testRedis()).url).href;
    await expect(checkRedisAccess(url)).rejects.toThrow('names no database of it: ERR DB index is out of range');
  });

  it('passes while Redis is down, silent or loading', async () => {
    const urls = [`redis://127.0.0.1:${await findFreePort()}`, await saying(''), await saying('-LOADING the dataset\r\n')];
    await Promise.all(urls.map((url) => checkRedisAccess(url)));
  });
});

describe('a subscriber', () => {
  const CHANNEL = 'latchkey:changes:0:id';

  async function subscribe() {
    const { logger, messages } = memoryLogger();
    const heard: string[] = [];
    const subscriber = createSubscriber(ownRedis.url, logger, {
      name: 'latchkey-test-subscriber',
      topic: 'changes',
      onReady: () => void subscriber.subscribe(['id']).catch(() => undefined),
      onMessage: (_id, message) => heard.push(message),
    });
    onTestFinished(() => subscriber.stop());
    await subscriber.start();
    const hears = (message: string) =>
      eventually(async () => {
        await ownRedis.ask((client) => client.publish(CHANNEL, message));
        return heard.includes(message);
      });
    await hears('first');
    return { subscriber, hears, messages };
  }

  it('is back a second after Redis, with its name, and queues no subscription meanwhile', async () => {
    const { subscriber, hears, messages } = await subscribe();
    await ownRedis.stop();
    await eventually(() => messages().length === 1);
    await expect(subscriber.subscribe(['other'])).rejects.toThrow();
    await ownRedis.start();
    const startedAt = performance.now();
    await hears('second');
    expect(performance.now() - startedAt).toBeLessThan(1_500);
    expect(await ownRedis.ask((client) => client.pubsub('CHANNELS', 'latchkey:*'))).toEqual([CHANNEL]);
    expect(await ownRedis.ask(async (client) => String(await client.client('LIST')))).toContain('name=latchkey-test-subscriber');
    expect(messages()).toEqual(OUTAGE);
  });

  it('stays connected while it is idle, replaces a frozen connection after a ping, and hears again', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const { subscriber, hears, messages } = await subscribe();
    const other = await testRedis();
    const ignore = () => undefined;
    const options = { name: 'idle', topic: 'changes', onReady: ignore, onMessage: ignore } as const;
    const idle = createSubscriber(other.url, memoryLogger().logger, options);
    onTestFinished(() => idle.stop());
    await idle.start();
    const closed = new Promise((resolve) => subscriber.redis.once('close', resolve));
    ownRedis.freeze();
    onTestFinished(() => ownRedis.thaw());
    const idleSince = performance.now();
    let closes = 0;
    idle.redis.on('close', () => {
      closes += 1;
    });
    vi.advanceTimersByTime(5_000);
    await closed;
    expect(performance.now() - idleSince).toBeLessThan(5_000);
    ownRedis.thaw();
    await hears('second');
    expect([closes, messages()]).toEqual([0, OUTAGE]);
  });

  it('closes immediately while Redis is frozen', async () => {
    const { subscriber } = await subscribe();
    ownRedis.freeze();
    onTestFinished(() => ownRedis.thaw());
    const startedAt = performance.now();
    subscriber.stop();
    await eventually(() => subscriber.redis.status === 'end');
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  });
});
