import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '@latchkey/testkit/eventually';
import { type OwnRedis, startOwnRedis } from '@latchkey/testkit/own-redis';
import { startTcpProxy } from '@latchkey/testkit/tcp-proxy';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { connectInBackground, createSubscriber } from './redis.ts';
import { memoryLogger } from './testing/memory-logger.ts';

const CHANNEL = 'latchkey:test';
/** What a silent connection may live, and a little for the machine. */
const PATIENCE = { timeoutMs: 15_000 };

let redis: OwnRedis;
beforeAll(async () => {
  redis = await startOwnRedis();
  return () => redis.remove();
});

/** A subscriber that subscribes anew each time, as its users do. */
async function subscribe(url = redis.url) {
  const { logger, lines } = memoryLogger();
  const heard: string[] = [];
  let readies = 0;
  const subscriber = createSubscriber(url, logger, {
    name: 'latchkey-test-subscriber',
    onReady: () => {
      readies += 1;
      subscriber.subscribe(CHANNEL).catch(() => undefined);
    },
  });
  onTestFinished(() => subscriber.disconnect());
  subscriber.on('message', (_channel, message: string) => heard.push(message));
  await connectInBackground(subscriber);
  const hears = (message: string) =>
    eventually(async () => {
      await publish(message);
      return heard.includes(message);
    }, PATIENCE);
  return { subscriber, heard, hears, readies: () => readies, messages: () => lines.map(({ msg }) => msg) };
}

const publish = (message: string) => redis.ask((client) => client.publish(CHANNEL, message));
const listeners = () => redis.ask(async (client) => Number((await client.pubsub('NUMSUB', CHANNEL))[1]));
const clients = () => redis.ask(async (client) => String(await client.client('LIST')));

describe('a subscriber', () => {
  it('hears what is published, and is known to Redis by its name', async () => {
    const { hears, readies } = await subscribe();
    await hears('a');
    expect(await clients()).toContain('name=latchkey-test-subscriber');
    expect(readies()).toBe(1);
  });

  it('subscribes to nothing by itself once Redis is back, and asks its user to', async () => {
    const { logger } = memoryLogger();
    let readies = 0;
    const onReady = () => {
      readies += 1;
    };
    const subscriber = createSubscriber(redis.url, logger, { name: 'bare', onReady });
    onTestFinished(() => subscriber.disconnect());
    await connectInBackground(subscriber);
    await subscriber.subscribe(CHANNEL);
    expect(await listeners()).toBe(1);
    await redis.stop();
    await redis.start();
    await eventually(() => readies === 2);
    expect(await listeners()).toBe(0);
  });

  it('is back within a second after Redis, says so once, and queues nothing meanwhile', async () => {
    const { subscriber, hears, messages } = await subscribe();
    await hears('a');
    let tries = 0;
    subscriber.on('reconnecting', () => {
      tries += 1;
    });
    await redis.stop();
    await eventually(() => subscriber.status !== 'ready');
    await expect(subscriber.subscribe('latchkey:other')).rejects.toThrow();
    // Some tries fail meanwhile, and none of them is worth a line.
    await eventually(() => tries >= 3);
    await redis.start();
    const startedAt = performance.now();
    await hears('b');
    expect(performance.now() - startedAt).toBeLessThan(1_000);
    expect(await redis.ask((client) => client.pubsub('CHANNELS', 'latchkey:*'))).toEqual([CHANNEL]);
    expect(messages()).toEqual(['redis is unreachable', 'redis is reachable again']);
  });

  it('replaces the connection to a frozen Redis within about 10 s, and hears again as soon as that goes on', async () => {
    const { subscriber, hears, messages } = await subscribe();
    await hears('a');
    const closed = new Promise((resolve) => subscriber.once('close', resolve));
    redis.freeze();
    onTestFinished(() => redis.thaw());
    const frozenAt = performance.now();
    await closed;
    expect(performance.now() - frozenAt).toBeLessThan(10_500);
    redis.thaw();
    const thawedAt = performance.now();
    await hears('b');
    expect(performance.now() - thawedAt).toBeLessThan(1_500);
    expect(messages()).toEqual(['redis is unreachable', 'redis is reachable again']);
  });

  it('replaces a connection over which nothing comes any more, though Redis is well', async () => {
    const proxy = await startTcpProxy(redis.url);
    onTestFinished(() => proxy.close());
    const { subscriber, hears } = await subscribe(proxy.url);
    await hears('a');
    const closed = new Promise((resolve) => subscriber.once('close', resolve));
    proxy.freeze();
    const frozenAt = performance.now();
    await closed;
    expect(performance.now() - frozenAt).toBeLessThan(10_500);
    await proxy.restore();
    await hears('b');
  });

  it('keeps a connection over which nothing is published', async () => {
    const { subscriber, hears, readies } = await subscribe();
    await hears('a');
    const pinged = () =>
      redis.ask(async (client) => Number(/cmdstat_ping:calls=(\d+)/.exec(await client.info('commandstats'))?.[1] ?? 0));
    const before = await pinged();
    await eventually(async () => (await pinged()) - before >= 2, PATIENCE);
    expect([subscriber.status, readies()]).toEqual(['ready', 1]);
  });

  it.each([
    ['well', async () => undefined],
    ['frozen', async () => redis.freeze()],
  ])('is closed at once and for good while Redis is %s', async (_what, breakIt) => {
    const { subscriber, hears } = await subscribe();
    await hears('a');
    await breakIt();
    onTestFinished(() => redis.thaw());
    const startedAt = performance.now();
    subscriber.disconnect();
    await eventually(() => subscriber.status === 'end');
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  });

  it('tries no more once it is closed while Redis is gone', async () => {
    const { subscriber, hears, readies } = await subscribe();
    await hears('a');
    await redis.stop();
    await eventually(() => subscriber.status === 'reconnecting');
    subscriber.disconnect();
    await redis.start();
    // Nothing is awaited but that nothing happens.
    await delay(1_000);
    expect(readies()).toBe(1);
    expect(await clients()).not.toContain('name=latchkey-test-subscriber');
  });
});
