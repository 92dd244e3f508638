import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis/redis';
import { beforeEach, describe, expect, it } from 'vitest';
import { type FakeApplication, FakeApps } from '../testing/fake-apps.ts';
import { createPublisher, NEVER, RECONCILE, range, startNode, type TestNode } from '../testing/test-node.ts';
import { REPLAY_FRAMES_MAX } from './hub.ts';

let apps: FakeApps;
let redisUrl: string;
let application: FakeApplication;
let node: TestNode;
beforeEach(async () => {
  apps = new FakeApps();
  redisUrl = (await testRedis()).url;
  application = apps.create();
  node = await startNode(apps, redisUrl, NEVER);
});

/** Connects after an event, and returns the snapshot once exactly the expected events came. */
async function resume(lastEventId: string, expected: number[]) {
  const client = node.connect(application.socketKey, { lastEventId });
  const { data } = await client.ready();
  await eventually(() => expect(client.sequences()).toEqual(expected));
  return { client, data };
}

/** Expects the next event, and only that, after those that came before. */
async function expectLive({ client }: Pick<Awaited<ReturnType<typeof resume>>, 'client'>, before: number[]) {
  await createPublisher(redisUrl).broadcast(application, apps.logVersion(application));
  await eventually(() => expect(client.sequences()).toEqual([...before, application.lastSequence]));
}

describe('a reconnecting client', () => {
  it('receives what it missed from the replay buffer, and beyond that from the log', async () => {
    const other = await node.open(application);
    // The reconciliation after the first subscription would read the log.
    await eventually(() => apps.calls.states > 0);
    const { broadcast } = createPublisher(redisUrl);
    await broadcast(application, ...apps.logVersions(application, REPLAY_FRAMES_MAX));
    await eventually(() => expect(other.sequences()).toHaveLength(REPLAY_FRAMES_MAX));
    for (const after of [0, 1, REPLAY_FRAMES_MAX - 1, REPLAY_FRAMES_MAX]) {
      const { data } = await resume(String(after), range(after + 1, REPLAY_FRAMES_MAX));
      expect(data).toMatchObject({ resumed: true, lastSequence: String(REPLAY_FRAMES_MAX) });
    }
    expect(apps.calls.list).toBe(0);
    await broadcast(application, apps.logVersion(application));
    await eventually(() => expect(other.sequences()).toHaveLength(REPLAY_FRAMES_MAX + 1));
    await resume('0', range(1, REPLAY_FRAMES_MAX + 1));
    expect(apps.calls.list).toBeGreaterThan(0);
  });

  it.each([
    [1_200, '0'],
    [1_200, '650'],
    [7, '6'],
    [7, '7'],
  ])('receives of %i logged events those after %s, in order, then live ones', async (count, lastEventId) => {
    apps.logVersions(application, count);
    const expected = range(Number(lastEventId) + 1, count);
    const resumed = await resume(lastEventId, expected);
    expect(resumed.data).toMatchObject({ resumed: true, lastSequence: String(count), version: `2.${count}` });
    await expectLive(resumed, expected);
  });

  it('has the log read with the id of its own request', async () => {
    apps.logVersions(application, 250);
    const client = node.connect(application.socketKey, { lastEventId: '0', headers: { 'x-request-id': 'resuming-1' } });
    await eventually(() => expect(client.sequences()).toEqual(range(1, 250)));
    expect(apps.listedFor).toEqual(['resuming-1', 'resuming-1', 'resuming-1']);
  });

  it.each([
    ['e1:3', '', true],
    ['3', '?epoch=e1', true],
    ['3', '', true],
    ['e0:3', '', false],
    ['e0:3', '?epoch=e1', false],
    ['3', '?epoch=e0', false],
    ['3', '?epoch=', false],
    [':3', '', false],
    ['e1:', '', false],
    ['e1:e1:3', '', false],
  ])('resumes in the epoch of the log only: %s%s', async (lastEventId, query, resumed) => {
    apps.logVersions(application, 5);
    const client = node.connect(application.socketKey, { lastEventId, query });
    expect(await client.ready()).toMatchObject({ epoch: 'e1', data: { resumed } });
    await eventually(() => expect(client.sequences()).toEqual(resumed ? [4, 5] : []));
    expect(client.frames.every(({ epoch }) => epoch === 'e1')).toBe(true);
  });

  it('receives all while further events are committed and broadcast', async () => {
    apps.logVersions(application, 1_100);
    const client = node.connect(application.socketKey, { lastEventId: '0' });
    const { broadcast } = createPublisher(redisUrl);
    for (let i = 0; i < 100; i += 1) await broadcast(application, apps.logVersion(application));
    await eventually(() => expect(client.sequences()).toEqual(range(1, 1_200)));
  });

  it.each(['0', '4', '13'])(
    'is told that it may have missed events after %s, of which 6 to 12 are logged',
    async (lastEventId) => {
      apps.logVersions(application, 12);
      apps.trim(application, 5);
      const resumed = await resume(lastEventId, []);
      expect(resumed.data).toMatchObject({ resumed: false, lastSequence: '12', version: '2.12' });
      await expectLive(resumed, []);
    },
  );

  it('resumes where only events that it has were trimmed', async () => {
    apps.logVersions(application, 12);
    apps.trim(application, 5);
    expect((await resume('5', range(6, 12))).data).toMatchObject({ resumed: true });
  });
});

describe('an open socket whose next event was trimmed from the log', () => {
  it.each([8, 10])('is closed with 1001, and resumes with the snapshot (%i of 10 events trimmed)', async (trimmed) => {
    const client = await node.open(application);
    const { publish, broadcast } = createPublisher(redisUrl);
    await broadcast(application, ...apps.logVersions(application, 3));
    await eventually(() => expect(client.sequences()).toEqual([1, 2, 3]));
    apps.logVersions(application, 7);
    apps.trim(application, trimmed);
    await publish(application, RECONCILE);
    expect(await client.closed).toMatchObject({ code: 1001 });
    expect(client.sequences()).toEqual([1, 2, 3]);
    expect((await resume('3', [])).data).toMatchObject({ resumed: false, lastSequence: '10', version: '2.10' });
  });

  it('is not sent what follows the gap, unlike a client that connected after it', async () => {
    const before = await node.open(application);
    await eventually(() => apps.calls.states > 0);
    const { publish, broadcast } = createPublisher(redisUrl);
    await broadcast(application, ...apps.logVersions(application, 3));
    await eventually(() => expect(before.sequences()).toEqual([1, 2, 3]));
    apps.logVersions(application, 7);
    const after = await node.open(application);
    apps.trim(application, 8);
    await publish(application, RECONCILE);
    expect(await before.closed).toMatchObject({ code: 1001 });
    await expectLive({ client: after }, []);
    expect((await resume('3', [])).data).toMatchObject({ resumed: false });
    expect((await resume('8', [9, 10, 11])).data).toMatchObject({ resumed: true });
  });
});
