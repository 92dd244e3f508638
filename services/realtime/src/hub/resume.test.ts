import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { beforeEach, describe, expect, it } from 'vitest';
import { createPublisher } from '../testing/channel-publisher.ts';
import { type FakeApplication, FakeApps } from '../testing/fake-apps.ts';
import { startNode, type TestNode } from '../testing/test-node.ts';
import { REPLAY_FRAMES_MAX } from './replay-buffer.ts';

/** Promises R6: who comes back misses nothing that is held, and is told when it may have. */
let apps: FakeApps;
let redisUrl: string;
let application: FakeApplication;
let node: TestNode;
beforeEach(async () => {
  apps = new FakeApps();
  redisUrl = (await testRedis()).url;
  application = apps.create();
  node = await startNode(apps, redisUrl, { reconcileMs: 3_600_000 });
});

const range = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, i) => first + i);

function logMany(count: number) {
  return Array.from({ length: count }, () => apps.logVersion(application));
}

/** Connects after an event, and answers what `ready` said once all up to the last event has come. */
async function resume(lastEventId: string, expected: number[]) {
  const client = node.connect(application.socketKey, { lastEventId });
  const { data } = await client.ready();
  await eventually(() => expect(client.sequences()).toEqual(expected));
  return { client, data };
}

/** Whatever follows is heard as well, once. */
async function expectLive({ client }: Awaited<ReturnType<typeof resume>>, sequences: number[]) {
  const [next] = logMany(1);
  if (next) await createPublisher(redisUrl).tell(application, next);
  await eventually(() => expect(client.sequences()).toEqual([...sequences, application.lastSequence]));
}

describe('a client that comes back', () => {
  it('gets what it missed from this node’s memory where it is there: the log is not asked', async () => {
    const other = node.connect(application.socketKey);
    await other.ready();
    // The look that follows a new hub's subscription would read what is logged before it, and keep that for a moment.
    await eventually(() => apps.calls.states > 0);
    await createPublisher(redisUrl).tell(application, ...logMany(REPLAY_FRAMES_MAX));
    await eventually(() => expect(other.sequences()).toHaveLength(REPLAY_FRAMES_MAX));
    const reads = apps.calls.list;
    for (const after of [0, 1, 42, REPLAY_FRAMES_MAX - 1, REPLAY_FRAMES_MAX]) {
      const { data } = await resume(String(after), range(after + 1, REPLAY_FRAMES_MAX));
      expect(data).toMatchObject({ resumed: true, lastSequence: String(REPLAY_FRAMES_MAX) });
    }
    expect(apps.calls.list).toBe(reads);
    await createPublisher(redisUrl).tell(application, ...logMany(1));
    await eventually(() => expect(other.sequences()).toHaveLength(REPLAY_FRAMES_MAX + 1));
    await resume('0', range(1, REPLAY_FRAMES_MAX + 1));
    expect(apps.calls.list).toBeGreaterThan(reads);
  });

  it.each([
    ['all of 1,200 events, page by page', 1_200, '0'],
    ['more than a page', 1_200, '600'],
    ['exactly a page', 500, '0'],
    ['one', 7, '6'],
    ['none', 7, '7'],
  ])('gets %s from the log, in order, and then what happens', async (_what, count, lastEventId) => {
    logMany(count);
    const expected = range(Number(lastEventId) + 1, count);
    const resumed = await resume(lastEventId, expected);
    expect(resumed.data).toMatchObject({ resumed: true, lastSequence: String(count), version: `2.${count}` });
    await expectLive(resumed, expected);
  });

  it('has the log read under the id of its own request', async () => {
    logMany(250);
    const client = node.connect(application.socketKey, { lastEventId: '0', headers: { 'x-request-id': 'resuming-1' } });
    await eventually(() => expect(client.sequences()).toEqual(range(1, 250)));
    expect(apps.listedFor).toEqual(['resuming-1', 'resuming-1', 'resuming-1']);
  });

  it('gets all of it while further events are committed and told of', async () => {
    logMany(1_100);
    const client = node.connect(application.socketKey, { lastEventId: '0' });
    const publisher = createPublisher(redisUrl);
    for (let i = 0; i < 100; i += 1) await publisher.tell(application, ...logMany(1));
    await eventually(() => expect(client.sequences()).toEqual(range(1, 1_200)));
  });

  it.each([
    ['before what the log still has', '0'],
    ['right before the gap', '4'],
    ['after all that there ever was', '13'],
  ])('is told that it may have missed something when it comes from %s', async (_what, lastEventId) => {
    logMany(12);
    apps.trim(application, 5);
    const resumed = await resume(lastEventId, []);
    expect(resumed.data).toMatchObject({ resumed: false, lastSequence: '12', version: '2.12' });
    await expectLive(resumed, []);
  });

  it('misses nothing when only what it has heard is gone from the log', async () => {
    logMany(12);
    apps.trim(application, 5);
    const resumed = await resume('5', range(6, 12));
    expect(resumed.data).toMatchObject({ resumed: true });
    apps.trim(application, 12);
    // The one before keeps what it has just read for a moment.
    node = await startNode(apps, redisUrl, { reconcileMs: 3_600_000 });
    expect((await resume('12', [])).data).toMatchObject({ resumed: true });
    expect((await resume('11', [])).data).toMatchObject({ resumed: false });
  });
});

describe('a live connection whose next event is held by nobody any more', () => {
  it.each([
    ['part', 8],
    ['all', 10],
  ])('is closed with 1001, comes back, is told so, and goes on from there (%s of the log trimmed)', async (_what, trimmed) => {
    const client = node.connect(application.socketKey);
    await client.ready();
    const publisher = createPublisher(redisUrl);
    await publisher.tell(application, ...logMany(3));
    await eventually(() => expect(client.sequences()).toEqual([1, 2, 3]));
    logMany(7);
    apps.trim(application, trimmed);
    await publisher.publish(application, 'look');
    expect(await client.closed).toMatchObject({ code: 1001 });
    expect(client.sequences()).toEqual([1, 2, 3]);
    const resumed = await resume('3', []);
    expect(resumed.data).toMatchObject({ resumed: false, lastSequence: '10', version: '2.10' });
    await expectLive(resumed, []);
  });

  it('is not told what follows the gap as if it followed what came before', async () => {
    const before = node.connect(application.socketKey);
    await before.ready();
    // A look that came late would read for it what is logged below.
    await eventually(() => apps.calls.states > 0);
    const publisher = createPublisher(redisUrl);
    await publisher.tell(application, ...logMany(3));
    await eventually(() => expect(before.sequences()).toEqual([1, 2, 3]));
    logMany(7);
    // It knows all that is committed, and keeps the node's memory of the application alive.
    const after = node.connect(application.socketKey);
    await after.ready();
    apps.trim(application, 8);
    await publisher.publish(application, 'look');
    expect(await before.closed).toMatchObject({ code: 1001 });
    await expectLive({ client: after, data: {} }, []);
    expect((await resume('3', [])).data).toMatchObject({ resumed: false });
    expect((await resume('8', [9, 10, 11])).data).toMatchObject({ resumed: true });
  });
});
