import { randomUUID } from 'node:crypto';
import { createLogger } from '@latchkey/kit/log/logger';
import { addLiveClients, readLiveClients } from '@latchkey/kit/redis/live-clients';
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
beforeEach(async () => {
  redis = new Redis((await testRedis()).url);
  onTestFinished(() => redis.disconnect());
  clock = createTestClock();
  applicationId = randomUUID();
  reports = [];
});

/**
 * A node with clients of the application; returns a function that counts another number of them.
 */
function openNode(add = addLiveClients.bind(undefined, redis)) {
  const none = { readForClient: async () => [] };
  const hub = new Hub({ applicationId, lastSequence: 0, keyFingerprint: '', epoch: '' }, none);
  const recordClients = async (clients: ReadonlyArray<readonly [string, number]>) => {
    reports.push(...clients.map(([, count]) => count));
  };
  const logger = createLogger('realtime', 'silent');
  const count = createClientCount({ hubs: { all: () => [hub] }, apps: { recordClients }, add, logger, clock: clock.now });
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
  await openNode(() => Promise.reject(new Error('away')))(3);
  expect(reports).toEqual([3]);
});
