import { eventually } from '@latchkey/testkit/eventually';
import { seededRandom, shuffle } from '@latchkey/testkit/random';
import { testRedis } from '@latchkey/testkit/redis';
import { beforeEach, describe, expect, it } from 'vitest';
import { createPublisher, textOf } from '../testing/channel-publisher.ts';
import { type FakeApplication, FakeApps } from '../testing/fake-apps.ts';
import type { TestClient } from '../testing/test-client.ts';
import { startNode } from '../testing/test-node.ts';

/** Promises R6: whatever becomes of messages between the nodes, each client hears all of its application, in order, and nothing else. */
const NEVER = { reconcileMs: 3_600_000 };

let apps: FakeApps;
let redisUrl: string;
beforeEach(async () => {
  apps = new FakeApps();
  redisUrl = (await testRedis()).url;
});

const upTo = (last: number) => Array.from({ length: last }, (_, i) => i + 1);

/** What the log has, as frames that a client has been sent of it. */
function expectWhole({ frames }: TestClient, application: FakeApplication) {
  expect(frames.slice(1).map(({ id, source, sequence, data }) => ({ id, source, sequence, data }))).toEqual(
    application.events.map(({ id, sequence, event }) => ({
      id,
      source: `/applications/${application.id}`,
      sequence: String(sequence),
      data: { version: event.event.case === 'versionChanged' && event.event.value.version, previousVersion: expect.any(String) },
    })),
  );
}

/** Texts that are no frame of the application, though some look like one. */
function garbageFor(application: FakeApplication, other: FakeApplication): string[] {
  const [event] = application.events;
  const text = event ? textOf(application, event) : '';
  const next = { ...JSON.parse(text), sequence: String(application.lastSequence + 1) };
  const strays = ['0', '-1', '1e3', '01', '', '999999999999999', '9'.repeat(400), 3, null].map((sequence) =>
    JSON.stringify({ ...next, sequence }),
  );
  const foreign = JSON.stringify({ ...next, source: `/applications/${other.id}` });
  const others = ['', 'null', '[]', '3', '{}', '{"type":1,"sequence":"1"}', 'look ', '\u0000', '\ufffd'.repeat(5_000)];
  return [...strays, ...others, foreign, text.slice(0, -1), text.slice(1), `${text}${text}`];
}

describe.each([1, 2, 3, 4])('messages that come doubled, out of order, garbled or not at all (seed %i)', (seed) => {
  it('are made up for, for every client of three nodes and no other, as soon as a later one comes', async () => {
    const below = seededRandom(seed);
    const nodes = await Promise.all([1, 2, 3].map(() => startNode(apps, redisUrl, NEVER)));
    const applications = [apps.create(), apps.create(), apps.create()] as const;
    const clients = applications.flatMap((application) =>
      nodes.flatMap((node) =>
        Array.from({ length: below(3) }, () => ({ application, client: node.connect(application.socketKey) })),
      ),
    );
    await Promise.all(clients.map(({ client }) => client.ready()));
    const publisher = createPublisher(redisUrl);
    for (let round = 0; round < 6; round += 1) {
      const messages = applications.flatMap((application, i) => {
        const events = Array.from({ length: 1 + below(20) }, () => apps.logVersion(application));
        const garbage = garbageFor(application, applications[(i + 1) % 3] as FakeApplication);
        const texts = events.flatMap((event) => Array<string>([0, 1, 1, 2][below(4)] ?? 0).fill(textOf(application, event)));
        return [...texts, ...Array.from({ length: below(4) }, () => garbage[below(garbage.length)] ?? '')].map((text) => ({
          application,
          text,
        }));
      });
      for (const { application, text } of shuffle(messages, below)) await publisher.publish(application, text);
    }
    // Of what was lost at the end, only what follows can tell.
    for (const application of applications) await publisher.tell(application, apps.logVersion(application));
    await eventually(() => {
      for (const { client, application } of clients) expect(client.sequences()).toEqual(upTo(application.lastSequence));
    });
    for (const { client, application } of clients) expectWhole(client, application);
  });
});

describe('a message that is no frame of the application', () => {
  it('is never sent to anybody, and nothing that follows is missed for it', async () => {
    const [application, other] = [apps.create(), apps.create()];
    const node = await startNode(apps, redisUrl, NEVER);
    const client = node.connect(application.socketKey);
    await client.ready();
    const publisher = createPublisher(redisUrl);
    await publisher.tell(application, apps.logVersion(application));
    for (const text of garbageFor(application, other)) await publisher.publish(application, text);
    await publisher.tell(application, apps.logVersion(application));
    await eventually(() => expect(client.sequences()).toEqual([1, 2]));
    expectWhole(client, application);
  });
});

describe('messages that are lost, all of them', () => {
  it('are made up for by the next look, at every application of the node', async () => {
    const node = await startNode(apps, redisUrl, {});
    const held = Array.from({ length: 30 }, () => {
      const application = apps.create();
      return { application, client: node.connect(application.socketKey) };
    });
    await Promise.all(held.map(({ client }) => client.ready()));
    for (const { application } of held) for (let i = 0; i < 5; i += 1) apps.logVersion(application);
    const startedAt = performance.now();
    await eventually(() => {
      for (const { client } of held) expect(client.sequences()).toEqual(upTo(5));
    });
    expect(performance.now() - startedAt).toBeLessThan(2_000);
    for (const { client, application } of held) expectWhole(client, application);
  });
});

describe('an event of a type that this release does not know', () => {
  it('is not sent, and takes its place: what follows is heard in order, live and by who comes back', async () => {
    const application = apps.create();
    const node = await startNode(apps, redisUrl, NEVER);
    const client = node.connect(application.socketKey);
    await client.ready();
    const publisher = createPublisher(redisUrl);
    await publisher.tell(application, apps.logVersion(application));
    apps.log(application, { case: undefined });
    await publisher.publish(application, 'look');
    await publisher.tell(application, apps.logVersion(application));
    await eventually(() => expect(client.sequences()).toEqual([1, 3]));
    const back = (await startNode(apps, redisUrl, NEVER)).connect(application.socketKey, { lastEventId: '0' });
    await eventually(() => expect(back.sequences()).toEqual([1, 3]));
    apps.log(application, { case: undefined });
    const afterIt = node.connect(application.socketKey, { lastEventId: '3' });
    expect((await afterIt.ready()).data).toMatchObject({ resumed: true, lastSequence: '4' });
    await publisher.tell(application, apps.logVersion(application));
    await eventually(() => expect(afterIt.sequences()).toEqual([5]));
  });
});
