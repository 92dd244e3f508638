import { Code, ConnectError } from '@connectrpc/connect';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis/redis';
import { seededRandom, shuffle } from '@latchkey/testkit/values/random';
import { beforeEach, describe, expect, it } from 'vitest';
import { type FakeApplication, FakeApps } from '../testing/fake-apps.ts';
import type { TestClient } from '../testing/test-client.ts';
import {
  createPublisher,
  NEVER,
  publishedText,
  RECONCILE,
  range,
  startNode,
  type TestNode,
  textOf,
} from '../testing/test-node.ts';

const DELETED = { code: 4102, reason: 'application deleted' };

let apps: FakeApps;
let redisUrl: string;
let application: FakeApplication;
beforeEach(async () => {
  apps = new FakeApps();
  redisUrl = (await testRedis()).url;
  application = apps.create();
});

const publisher = () => createPublisher(redisUrl);
const receives = (client: TestClient, sequences: number[]) =>
  eventually(() => expect(client.sequences()).toEqual(sequences), { timeoutMs: 10_000 });
/** Waits for the reconciliation that follows a new hub's subscription. */
const settled = () => eventually(() => apps.calls.states > 0);

async function openMany(node: TestNode, count: number) {
  const applications = Array.from({ length: count }, () => apps.create());
  return Promise.all(applications.map(async (held) => ({ application: held, client: await node.open(held) })));
}

describe('lost messages', () => {
  it('of events, rotations and deletions are found by periodic reconciliation within 2 s', async () => {
    const node = await startNode(apps, redisUrl);
    const [changed, rotated, deleted] = [apps.create(), apps.create(), apps.create()];
    const clients = await Promise.all([changed, rotated, deleted].map((each) => node.open(each)));
    apps.logVersions(changed, 5);
    apps.rotate(rotated);
    apps.logVersion(deleted);
    apps.log(deleted, { case: 'deleted', value: {} });
    const startedAt = performance.now();
    await receives(clients[0] as TestClient, range(1, 5));
    expect(await clients[1]?.closed).toMatchObject({ code: 4103 });
    expect(await clients[2]?.closed).toEqual(DELETED);
    expect(clients[2]?.sequences()).toEqual([1, 2]);
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  });

  it.each([1, 2])('and doubled, reordered or garbled ones are detected by the next frame (seed %i)', async (seed) => {
    const below = seededRandom(seed);
    const [node, { publish, broadcast }] = [await startNode(apps, redisUrl, NEVER), publisher()];
    const client = await node.open(application);
    const garbage = () => {
      const [event] = application.events;
      const text = event ? publishedText(application, event) : '{}';
      const next = { ...JSON.parse(text), sequence: String(application.lastSequence + 1) };
      const strays = ['0', '-1', '1e3', '01', '', '9'.repeat(400), 3, null].map((sequence) => ({ ...next, sequence }));
      const all = [
        ...strays,
        { ...next, createdAt: 'now' },
        { ...next, data: { version: 3 } },
        [],
        3,
        { type: 1, sequence: '1' },
      ];
      return [...all.map((value) => JSON.stringify(value)), '', '\u0000', text.slice(0, -1), `${text}${text}`];
    };
    for (let round = 0; round < 6; round += 1) {
      const events = apps.logVersions(application, 1 + below(20));
      const texts = events.flatMap((event) => Array<string>([0, 1, 1, 2][below(4)] ?? 0).fill(publishedText(application, event)));
      for (const text of shuffle([...texts, ...garbage()], below)) await publish(application, text);
    }
    await broadcast(application, apps.logVersion(application));
    await receives(client, range(1, application.lastSequence));
    expect(client.frames.slice(1)).toEqual(application.events.map((event) => JSON.parse(textOf(application, event))));
  });

  it('between the lookup of a client and its subscription are found when it is subscribed', async () => {
    const node = await startNode(apps, redisUrl, NEVER);
    const release = apps.hold();
    const client = node.connect(application.socketKey);
    await eventually(() => apps.calls.lookUp === 1);
    await publisher().broadcast(application, apps.logVersion(application));
    release();
    expect((await client.ready()).data).toMatchObject({ lastSequence: '0', version: '1.0' });
    await receives(client, [1]);
  });
});

it('a deletion whose event was trimmed from the log closes the sockets all the same', async () => {
  const client = await (await startNode(apps, redisUrl)).open(application);
  apps.log(application, { case: 'deleted', value: {} });
  apps.trim(application, 1);
  expect(await client.closed).toEqual(DELETED);
  expect(client.sequences()).toEqual([]);
});

it('an event type of a later release is skipped, live and on resuming', async () => {
  const [node, { publish, broadcast }] = [await startNode(apps, redisUrl, NEVER), publisher()];
  const client = await node.open(application);
  await broadcast(application, apps.logVersion(application));
  apps.log(application, { case: undefined });
  await publish(application, RECONCILE);
  await broadcast(application, apps.logVersion(application));
  await receives(client, [1, 3]);
  await receives((await startNode(apps, redisUrl, NEVER)).connect(application.socketKey, { lastEventId: '0' }), [1, 3]);
});

describe('a rotated key', () => {
  const ROTATED = { code: 4103, reason: 'socket key rotated' };

  it('closes its sockets when a client connects with the new one, and not those of the new one', async () => {
    const node = await startNode(apps, redisUrl, NEVER);
    const old = await node.open(application);
    apps.rotate(application);
    const fresh = await node.open(application);
    expect(await old.closed).toEqual(ROTATED);
    await publisher().broadcast(application, apps.logVersion(application));
    await receives(fresh, [1]);
  });

  it('does not close sockets of the new key that connect during a reconciliation that knows the old one', async () => {
    const [node, { publish, broadcast }] = [await startNode(apps, redisUrl, NEVER), publisher()];
    const old = await node.open(application);
    await settled();
    const states = apps.calls.states;
    const release = apps.hold();
    await publish(application, RECONCILE);
    await eventually(() => apps.calls.states > states);
    apps.waitFor(undefined);
    apps.rotate(application);
    const fresh = await node.open(application);
    release();
    expect(await old.closed).toEqual(ROTATED);
    await broadcast(application, apps.logVersion(application));
    await receives(fresh, [1]);
  });

  it('closes sockets of the old key that connect during a reconciliation that knows the new one', async () => {
    const [node, { publish }] = [await startNode(apps, redisUrl, NEVER), publisher()];
    await node.open(application);
    await settled();
    const states = apps.calls.states;
    const releaseLookUp = apps.hold();
    const late = node.connect(application.socketKey);
    await eventually(() => apps.calls.lookUp === 2);
    apps.rotate(application);
    const releaseStates = apps.hold();
    await publish(application, RECONCILE);
    await eventually(() => apps.calls.states > states);
    apps.waitFor(undefined);
    releaseLookUp();
    await late.ready();
    releaseStates();
    expect(await late.closed).toEqual(ROTATED);
  });
});

describe('a failing apps service', () => {
  const reconcilerLines = ({ lines }: TestNode) =>
    lines.map(({ msg }) => msg as string).filter((msg) => msg.startsWith('sweep '));
  const LOGGED = ['sweep failed, to be tried again', 'sweep succeeds again'];

  it('closes no socket, is logged once, and clients receive all events afterwards', async () => {
    const node = await startNode(apps, redisUrl, { reconcileMs: 100 });
    const client = await node.open(application);
    apps.failWith(new ConnectError('away', Code.Unavailable));
    apps.logVersions(application, 3);
    const states = apps.calls.states;
    await eventually(() => apps.calls.states >= states + 3);
    expect([client.isOpen, client.sequences()]).toEqual([true, []]);
    apps.failWith(undefined);
    await receives(client, [1, 2, 3]);
    await eventually(() => expect(reconcilerLines(node)).toEqual(LOGGED));
  });

  it('for some applications delays no other', async () => {
    const node = await startNode(apps, redisUrl, { reconcileMs: 100 });
    const held = await openMany(node, 40);
    const failing = new Set(held.slice(0, 20).map(({ application: { id } }) => id));
    apps.beforeList = (id) => {
      if (failing.has(id)) throw new ConnectError('no', Code.Internal);
    };
    for (const each of held) apps.logVersion(each.application);
    for (const { client } of held.slice(20)) await receives(client, [1]);
    for (const { client } of held.slice(0, 20)) expect([client.isOpen, client.sequences()]).toEqual([true, []]);
    failing.clear();
    for (const { client } of held) await receives(client, [1]);
    await eventually(() => expect(reconcilerLines(node)).toEqual(LOGGED));
  });

  it('that is slow is read for many applications concurrently', async () => {
    const node = await startNode(apps, redisUrl, { reconcileMs: 100 });
    const held = await openMany(node, 40);
    const gate = Promise.withResolvers<void>();
    let reading = 0;
    apps.beforeList = async () => {
      reading += 1;
      if (reading === 8) gate.resolve();
      await gate.promise;
    };
    for (const each of held) apps.logVersion(each.application);
    for (const { client } of held) await receives(client, [1]);
  });
});

describe('an event log that was restored from a backup', () => {
  it('closes the sockets of clients that are ahead of it, and reports that when they reconnect', async () => {
    const [node, { broadcast }] = [await startNode(apps, redisUrl), publisher()];
    const client = await node.open(application);
    await broadcast(application, ...apps.logVersions(application, 5));
    await receives(client, range(1, 5));
    application.events.splice(2);
    application.lastSequence = 2;
    expect((await client.closed).code).toBe(1001);
    const back = node.connect(application.socketKey, { lastEventId: '5' });
    expect((await back.ready()).data).toMatchObject({ lastSequence: '2', resumed: false });
  });

  it('tells 50 clients that reconnect, also where it has other events under the same numbers', async () => {
    const [node, { publish, broadcast }] = [await startNode(apps, redisUrl), publisher()];
    const clients = await Promise.all(range(1, 50).map(() => node.open(application)));
    await broadcast(application, ...apps.logVersions(application, 5));
    const lost = apps.logVersion(application);
    for (const client of clients) await receives(client, range(1, 5));
    application.events.splice(2);
    application.lastSequence = 2;
    apps.epoch = 'e2';
    apps.logVersions(application, 5);
    for (const client of clients) expect((await client.closed).code).toBe(1001);
    const back = clients.map(() => node.connect(application.socketKey, { lastEventId: 'e1:5' }));
    for (const client of back) expect(await client.ready()).toMatchObject({ epoch: 'e2', data: { resumed: false } });
    // An event of the old log that is published late.
    await publish(application, publishedText(application, lost));
    await broadcast(application, apps.logVersion(application));
    for (const client of back) {
      await eventually(() => expect(client.sequences().at(-1) ?? Number(client.frames[0]?.data.lastSequence)).toBe(8));
      expect(client.frames.every(({ epoch }) => epoch === 'e2')).toBe(true);
    }
    for (const client of clients) expect(client.sequences()).toEqual(range(1, 5));
  });
});

it('applications without sockets are not compared any more', async () => {
  const node = await startNode(apps, redisUrl, { reconcileMs: 50 });
  for (const { client } of await openMany(node, 20)) client.ws.terminate();
  await eventually(() => expect(node.lines.filter(({ msg }) => msg === 'socket closed')).toHaveLength(20));
  const states = apps.calls.states;
  await expect(eventually(() => apps.calls.states > states + 1, { timeoutMs: 500 })).rejects.toThrow();
});
