import { createLogger } from '@latchkey/kit/log/logger';
import { checkRedisAccess, connectInBackground, createFailFastRedis, type Redis } from '@latchkey/kit/redis/redis';
import { eventually } from '@latchkey/testkit/eventually';
import { startTcpProxy, type TcpProxy } from '@latchkey/testkit/network/tcp-proxy';
import { startOwnCluster } from '@latchkey/testkit/redis/own-cluster';
import { testRedis } from '@latchkey/testkit/redis/redis';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Count, RateLimiter } from './rate-limiter.ts';
import type { Limit } from './rate-limits.ts';

const LIMIT: Limit = { name: 'ip', max: 3, windowMs: 60_000 };
const PRINCIPAL: Limit = { name: 'principal', max: 2, windowMs: 60_000 };

const silent = createLogger('test', 'silent');
let redisUrl: string;
let proxy: TcpProxy;
const connections: Redis[] = [];

async function connectTo(url: string): Promise<Redis> {
  // Only behind the proxy are time-outs tested; elsewhere a busy machine must not cause any.
  const redis = createFailFastRedis(url, silent, url === proxy.url ? {} : { commandTimeout: 10_000 });
  connections.push(redis);
  // Its first response may come too late, and then it connects again.
  await connectInBackground(redis);
  await eventually(() => redis.status === 'ready', { timeoutMs: 10_000 });
  return redis;
}

const createLimiter = async (url = redisUrl) => new RateLimiter(await connectTo(url), silent);

let subjects = 0;
function subject(): string {
  subjects += 1;
  return `subject-${subjects}`;
}

const ofIp = (name = subject()): Count => ({ limit: LIMIT, subject: name });
const ofPrincipal = (name = subject()): Count => ({ limit: PRINCIPAL, subject: name });

beforeAll(async () => {
  redisUrl = (await testRedis()).url;
  proxy = await startTcpProxy(redisUrl);
});
afterEach(() => proxy.restore());
afterAll(async () => {
  for (const redis of connections) redis.disconnect();
  await proxy.close();
});

it('a limit in a Redis Cluster is exact, and recalls a principal of the current epoch alone', async () => {
  const { url, node } = await startOwnCluster();
  await checkRedisAccess(url, 'REDIS_LIMITS_URL');
  await checkRedisAccess(node, 'REDIS_EVENTS_URL');
  for (const setting of ['REDIS_URL', 'REDIS_QUEUES_URL'])
    await expect(checkRedisAccess(node, setting)).rejects.toThrow(`${setting}, at `);
  const redis = await connectTo(url);
  const limiter = new RateLimiter(redis, silent);
  const [subjectOfIp, epochKey] = [ofIp(), subject()];
  await redis.set(epochKey, 'now');
  const recall = (epoch: string, count = ofPrincipal()) => limiter.hitBoth(ofIp(), count, { epochKey, epoch });
  expect((await recall('before')).length).toBe(1);
  expect((await recall('now'))[1]).toMatchObject({ allowed: true, remaining: 1 });
  const principal = ofPrincipal();
  const states = await Promise.all(Array.from({ length: 20 }, () => recall('now', principal)));
  expect(states.filter(([, state]) => state?.allowed)).toHaveLength(PRINCIPAL.max);
  const now = { epochKey, epoch: 'now' };
  const hits = await Promise.all(Array.from({ length: 20 }, () => limiter.hitBoth(subjectOfIp, ofPrincipal(), now)));
  expect(hits.filter(([state, counted]) => state.allowed && counted)).toHaveLength(LIMIT.max);
  expect(hits.filter(([state, counted]) => !state.allowed && counted)).toEqual([]);
  await limiter.refund(principal);
}, 30_000);

describe('a limit in Redis', () => {
  it('allows as many events as its maximum, and reports how many are left', async () => {
    const limiter = await createLimiter();
    const count = ofIp();
    const states = [await limiter.hit(count), await limiter.hit(count), await limiter.hit(count), await limiter.hit(count)];
    expect(states.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
      [true, 2],
      [true, 1],
      [true, 0],
      [false, 0],
    ]);
    for (const { resetMs } of states) expect(resetMs).toBeGreaterThan(50_000);
  });

  it('is shared by all gateways, and exact under load', async () => {
    const limiters = await Promise.all([createLimiter(), createLimiter(), createLimiter()]);
    const count = { limit: { ...LIMIT, max: 50 }, subject: subject() };
    const states = await Promise.all(Array.from({ length: 90 }, (_, i) => limiters[i % 3]?.hit(count)));
    expect(states.filter((state) => state?.allowed)).toHaveLength(50);
  });

  it('ends with its window, however many events there are', async () => {
    const limiter = await createLimiter();
    const count = { limit: { ...LIMIT, windowMs: 150 }, subject: subject() };
    const startedAt = performance.now();
    await eventually(async () => !(await limiter.hit(count)).allowed, { intervalMs: 1 });
    await eventually(async () => (await limiter.hit(count)).allowed, { intervalMs: 10 });
    expect(performance.now() - startedAt).toBeGreaterThan(140);
  });

  it('repairs a counter without an expiry', async () => {
    const limiter = await createLimiter();
    const count = ofIp();
    const redis = await connectTo(redisUrl);
    await redis.set(`latchkey:limit:ip:${count.subject}`, '2');
    expect(await limiter.hit(count)).toMatchObject({ remaining: 0, resetMs: 60_000 });
    expect(await redis.pttl(`latchkey:limit:ip:${count.subject}`)).toBeGreaterThan(0);
  });

  it('refunds events, never more than there were, and creates no counter that would never expire', async () => {
    const limiter = await createLimiter();
    const count = ofIp();
    await limiter.refund(count);
    expect(await (await connectTo(redisUrl)).exists(`latchkey:limit:ip:${count.subject}`)).toBe(0);
    await limiter.hit(count);
    for (let i = 0; i < 3; i += 1) await limiter.refund(count);
    expect((await limiter.hit(count)).remaining).toBe(2);
  });
});

it('two limits of a request are counted in one round trip, the second only if the first allows the request', async () => {
  const limiter = await createLimiter();
  const [first, second] = [ofIp(), ofPrincipal()];
  const remaining = async () => (await limiter.hitBoth(first, second)).map((state) => state?.allowed && state.remaining);
  expect([await remaining(), await remaining(), await remaining()]).toEqual([
    [2, 1],
    [1, 0],
    [0, false],
  ]);
  expect(await remaining()).toEqual([false]);
  expect((await limiter.hitBoth(ofIp(), second))[1]).toMatchObject({ allowed: false, limit: PRINCIPAL });
});

describe('a cached principal', () => {
  async function setUp(epoch: string | undefined) {
    const limiter = await createLimiter();
    const redis = await connectTo(redisUrl);
    const epochKey = `epoch:${subject()}`;
    if (epoch !== undefined) await redis.set(epochKey, epoch);
    return { limiter, redis, recall: [ofPrincipal(), { epochKey, epoch: 'known' }] as const };
  }

  it('is confirmed and counted in the same round trip while its epoch is current', async () => {
    const { limiter, recall } = await setUp('known');
    const first = { allowed: true, remaining: 2 };
    expect(await limiter.hitBoth(ofIp(), ...recall)).toMatchObject([first, { allowed: true, remaining: 1, limit: PRINCIPAL }]);
  });

  it.each([
    ['is gone', undefined],
    ['is another', 'other'],
    ['is empty', ''],
  ])('is neither confirmed nor counted if its epoch %s', async (_what, epoch) => {
    const { limiter, recall } = await setUp(epoch);
    expect(await limiter.hitBoth(ofIp(), ...recall)).toEqual([expect.objectContaining({ remaining: 2 })]);
    expect((await limiter.hit(recall[0])).remaining).toBe(1);
  });

  it('is not counted for a request that its address limit rejects', async () => {
    const { limiter, recall } = await setUp('known');
    const first = ofIp();
    for (let i = 0; i < 3; i += 1) await limiter.hit(first);
    expect(await limiter.hitBoth(first, ...recall)).toEqual([expect.objectContaining({ allowed: false })]);
    expect((await limiter.hit(recall[0])).remaining).toBe(1);
  });

  it('is not confirmed while Redis is away', async () => {
    const redis = await connectTo(redisUrl);
    const limiter = await createLimiter(proxy.url);
    const epochKey = `epoch:${subject()}`;
    await redis.set(epochKey, 'known');
    const recall = [ofPrincipal(), { epochKey, epoch: 'known' }] as const;
    expect(await limiter.hitBoth(ofIp(), ...recall)).toHaveLength(2);
    proxy.freeze();
    for (let i = 0; i < 2; i += 1) expect(await limiter.hitBoth(ofIp(), ...recall)).toHaveLength(1);
  });
});

describe.each([
  ['frozen', () => proxy.freeze()],
  ['gone', () => proxy.cut()],
])('with Redis %s', (_what, breakRedis) => {
  it('a limit holds within the process', async () => {
    const limiter = await createLimiter(proxy.url);
    const count = ofIp();
    await breakRedis();
    const states = [];
    for (let i = 0; i < 4; i += 1) states.push(await limiter.hit(count));
    expect(states.map(({ allowed }) => allowed)).toEqual([true, true, true, false]);
    await limiter.refund(count);
    await limiter.refund(count);
    expect((await limiter.hit(count)).allowed).toBe(true);
  });

  it('only the first event waits for it', async () => {
    const limiter = await createLimiter(proxy.url);
    await breakRedis();
    const times = [];
    for (let i = 0; i < 5; i += 1) {
      const startedAt = performance.now();
      await limiter.hit(ofIp());
      times.push(performance.now() - startedAt);
    }
    expect(times[0]).toBeLessThan(1_000);
    // Each would take a quarter of a second. The machine may delay one of them.
    const [, typical] = times.slice(1).toSorted((a, b) => a - b);
    expect(typical).toBeLessThan(100);
  });
});

describe('requests share a command', () => {
  const BATCH_WAIT_MS = 5;

  function countCommands() {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const sizes: number[] = [];
    const latchkeyHitBoth = async (keys: number) => {
      sizes.push(keys / 3);
      return Array<number>((keys / 3) * 4).fill(1);
    };
    const redis = { defineCommand: () => undefined, latchkeyHitBoth } as unknown as Redis;
    const limiter = new RateLimiter(redis, silent, BATCH_WAIT_MS);
    const turn = async (requests: number) => {
      for (let i = 0; i < requests; i += 1) void limiter.hitBoth(ofIp(), ofPrincipal());
      for (let i = 0; i < 2; i += 1) await new Promise((resolve) => setImmediate(resolve));
    };
    return { sizes, turn };
  }

  it('of their turn alone at rest', async () => {
    const { sizes, turn } = countCommands();
    for (let i = 0; i < 3; i += 1) await turn(1);
    expect(sizes).toEqual([1, 1, 1]);
  });

  it('that is as large as the one before, or sent after the longest wait', async () => {
    const { sizes, turn } = countCommands();
    for (const requests of [3, 1, 2, 2]) await turn(requests);
    expect(sizes).toEqual([3, 3]);
    vi.advanceTimersByTime(BATCH_WAIT_MS);
    expect(sizes).toEqual([3, 3, 2]);
    // The usual size falls by one with each, until requests are alone again.
    await turn(1);
    expect(sizes).toHaveLength(3);
    vi.advanceTimersByTime(BATCH_WAIT_MS);
    await turn(1);
    expect(sizes).toEqual([3, 3, 2, 1, 1]);
  });
});

it('a limit within the process ends with its window', async () => {
  const redis = { defineCommand: () => undefined, latchkeyHit: () => Promise.reject(new Error('gone')) } as unknown as Redis;
  const [limiter, count] = [new RateLimiter(redis, silent), ofIp()];
  const clock = vi.spyOn(performance, 'now').mockReturnValue(1_000);
  onTestFinished(() => clock.mockRestore());
  for (let i = 0; i < 3; i += 1) await limiter.hit(count);
  clock.mockReturnValue(1_000 + LIMIT.windowMs - 1);
  expect(await limiter.hit(count)).toMatchObject({ allowed: false, resetMs: 1 });
  clock.mockReturnValue(1_000 + LIMIT.windowMs);
  expect(await limiter.hit(count)).toMatchObject({ allowed: true, remaining: 2 });
});
