import { randomUUID } from 'node:crypto';
import { createLogger } from '@latchkey/kit/log/logger';
import type { AccountChange } from '@latchkey/kit/redis/account-changes';
import { readLiveClients } from '@latchkey/kit/redis/live-clients';
import { Redis } from '@latchkey/kit/redis/redis';
import { testRedis } from '@latchkey/testkit/redis/redis';
import { createTestClock } from '@latchkey/testkit/values/test-clock';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { Hub } from '../hub/hub.ts';
import type { LiveSocket } from '../socket/live-socket.ts';
import { createClientCount } from './client-count.ts';

const SAMPLE_MS = 5_000;
const DAY_MS = 24 * 3_600_000;

let redis: Redis;
let clock: ReturnType<typeof createTestClock>;
let applicationId: string;
/** Clients that nodes reported, in order. */
let reports: number[];
/** Applications that nodes announced, in order. */
let announced: Array<string | undefined>;
beforeEach(async () => {
  redis = new Redis((await testRedis()).url);
  onTestFinished(() => redis.disconnect());
  clock = createTestClock();
  applicationId = randomUUID();
  reports = [];
  announced = [];
});

/**
 * A node with clients of the application; returns a function that counts another number of them.
 */
function openNode(ofAll: Pick<Redis, 'eval'> = redis) {
  const none = { readForClient: async () => [] };
  const hub = new Hub({ applicationId, accountId: 'owner', lastSequence: 0, keyFingerprint: '', epoch: '' }, none);
  const recordClients = async (clients: ReadonlyArray<readonly [string, number]>) => {
    reports.push(...clients.map(([, count]) => count));
  };
  const logger = createLogger('realtime', 'silent');
  const announce = (accountId: string, change: AccountChange) => {
    expect([accountId, change.kind]).toEqual(['owner', 'live_clients']);
    announced.push(change.applicationId);
  };
  // The hub of an application without clients is closed.
  const hubs = { all: () => (hub.sockets.size > 0 ? [hub] : []) };
  const count = createClientCount({ hubs, apps: { recordClients }, redis: ofAll, announce, logger, clock: clock.now });
  return async (clients: number) => {
    hub.sockets.clear();
    for (let i = 0; i < clients; i += 1) hub.sockets.add({} as LiveSocket);
    await count();
  };
}

it('adds up the clients of all nodes, of which those that moved count once', async () => {
  const [first, second] = [openNode(), openNode()];
  await first(3);
  await second(2);
  expect(reports).toEqual([3, 5]);
  clock.advance(SAMPLE_MS);
  await first(0);
  await second(5);
  expect(reports).toEqual([3, 5]);
  clock.advance(SAMPLE_MS);
  await first(4);
  await second(2);
  expect(reports).toEqual([3, 5, 4, 6]);
  expect(await readLiveClients(redis, applicationId, new Date(clock.now().getTime() + SAMPLE_MS / 2))).toBe(6);
  expect(await readLiveClients(redis, randomUUID(), clock.now())).toBe(0);
});

it('corrects the sample that is read, and announces it, as soon as clients come or go', async () => {
  const [first, second] = [openNode(), openNode()];
  const read = () => readLiveClients(redis, applicationId, clock.now());
  for (const moment of [0, 1_000, 2_000, 3_000]) {
    announced = [];
    await first(1);
    await second(2);
    expect(await read()).toBe(3);
    await first(1);
    expect(announced).toEqual([applicationId, applicationId]);
    await first(0);
    await second(3);
    expect(await read()).toBe(3);
    await second(0);
    expect(await read()).toBe(0);
    clock.advance(SAMPLE_MS + moment);
  }
  // Only what all nodes count at the same time is the most of a day.
  expect(reports).toEqual([1, 3]);
});

it('counts a sample once, and reports the same number again on the next day only', async () => {
  const node = openNode();
  for (let i = 0; i < 2; i += 1) await node(2);
  clock.advance(SAMPLE_MS);
  await node(2);
  expect(reports).toEqual([2]);
  clock.advance(DAY_MS);
  await node(2);
  expect(reports).toEqual([2, 2]);
});

it('counts the clients of this node alone while Redis is away', async () => {
  await openNode({ eval: () => Promise.reject(new Error('away')) })(3);
  expect(reports).toEqual([3]);
});
