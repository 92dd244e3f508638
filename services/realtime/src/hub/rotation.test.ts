import { randomUUID } from 'node:crypto';
import { eventually } from '@latchkey/testkit/eventually';
import { seededRandom } from '@latchkey/testkit/random';
import { testRedis } from '@latchkey/testkit/redis';
import { beforeEach, describe, expect, it } from 'vitest';
import { createPublisher } from '../testing/channel-publisher.ts';
import { type FakeApplication, FakeApps } from '../testing/fake-apps.ts';
import type { TestClient } from '../testing/test-client.ts';
import { startNode, startRelay } from '../testing/test-node.ts';

/** Decisions 6 and 10: connections opened with a rotated key are closed with 4103 on every node, and never those opened with the new one. */
const ROTATED = { code: 4103, reason: 'socket key rotated' };
const NEVER = { reconcileMs: 3_600_000 };

let apps: FakeApps;
let redisUrl: string;
let application: FakeApplication;
beforeEach(async () => {
  apps = new FakeApps();
  redisUrl = (await testRedis()).url;
  application = apps.create();
});

/** Relays that a key was rotated as the apps service does: without a sequence. */
async function relayRotation(relay: ReturnType<typeof startRelay>, type: 'socketKey' | 'httpKey') {
  const [id, createdAt] = [randomUUID(), new Date().toISOString()];
  const facts = { id, applicationId: application.id, accountId: randomUUID(), createdAt };
  await relay.add(id, 'runtime_key_rotated', { ...facts, type: 'runtime_key_rotated', sequence: null, data: { type } });
}

async function connectAll(nodes: ReadonlyArray<{ connect(key: string): TestClient }>) {
  const clients = nodes.map((node) => node.connect(application.socketKey));
  await Promise.all(clients.map((client) => client.ready()));
  return clients;
}

async function expectOpen(clients: readonly TestClient[]) {
  const publisher = createPublisher(redisUrl);
  await publisher.tell(application, apps.logVersion(application));
  const last = application.lastSequence;
  await eventually(() => {
    for (const client of clients) expect(client.sequences().at(-1)).toBe(last);
  });
}

describe('a rotated socket key', () => {
  it('closes what it opened on every node as soon as it is told of, leaves the others, and opens nothing more', async () => {
    const nodes = await Promise.all([startNode(apps, redisUrl, NEVER), startNode(apps, redisUrl, NEVER)]);
    const [relay, neighbour] = [startRelay(redisUrl), apps.create()];
    const [old, oldKey] = [await connectAll(nodes), application.socketKey];
    const bystander = nodes[0].connect(neighbour.socketKey);
    await bystander.ready();
    apps.rotate(application);
    // Who comes with the new key makes the first node look; the second has only the word of it.
    const fresh = await connectAll(nodes.slice(0, 1));
    await relayRotation(relay, 'socketKey');
    expect(await Promise.all(old.map(({ closed }) => closed))).toEqual([ROTATED, ROTATED]);
    await expectOpen(fresh);
    expect(bystander.ws.readyState).toBe(bystander.ws.OPEN);
    for (const node of nodes) {
      expect(await node.connect(oldKey).refused).toMatchObject({ status: 401, body: { code: 'api_key_invalid' } });
    }
  });

  it('closes what it opened within the time of a look when the word of it was lost', async () => {
    const nodes = await Promise.all([startNode(apps, redisUrl), startNode(apps, redisUrl)]);
    const old = await connectAll(nodes);
    apps.rotate(application);
    const rotatedAt = performance.now();
    expect(await Promise.all(old.map(({ closed }) => closed))).toEqual([ROTATED, ROTATED]);
    expect(performance.now() - rotatedAt).toBeLessThan(2_000);
  });

  it('closes what it opened at the latest when somebody comes with the new one', async () => {
    const node = await startNode(apps, redisUrl, NEVER);
    const old = await connectAll([node]);
    apps.rotate(application);
    const fresh = await connectAll([node]);
    expect(await old[0]?.closed).toEqual(ROTATED);
    await expectOpen(fresh);
  });

  it('closes nothing when it is the HTTP key: nodes do not even look', async () => {
    const node = await startNode(apps, redisUrl, NEVER);
    const relay = startRelay(redisUrl);
    const clients = await connectAll([node]);
    await eventually(() => apps.calls.states > 0);
    const looks = apps.calls.states;
    await relayRotation(relay, 'httpKey');
    await relay.relay(application, apps.logVersion(application));
    await eventually(() => expect(clients[0]?.sequences()).toEqual([1]));
    expect(apps.calls.states).toBe(looks);
  });

  it('does not close what the new one opened while a look was under way that knows the old one only', async () => {
    const node = await startNode(apps, redisUrl, NEVER);
    const publisher = createPublisher(redisUrl);
    const old = await connectAll([node]);
    await eventually(() => apps.calls.states > 0);
    const looks = apps.calls.states;
    let answer = () => {};
    apps.waitFor(new Promise<void>((resolve) => (answer = resolve)));
    await publisher.publish(application, 'look');
    await eventually(() => apps.calls.states > looks);
    apps.waitFor(undefined);
    apps.rotate(application);
    const fresh = await connectAll([node]);
    answer();
    expect(await old[0]?.closed).toEqual(ROTATED);
    await publisher.publish(application, 'look');
    await expectOpen(fresh);
  });

  it('closes also what it opened while a look was under way that knows the new one already, without waiting for the next', async () => {
    const node = await startNode(apps, redisUrl, NEVER);
    const publisher = createPublisher(redisUrl);
    await connectAll([node]);
    await eventually(() => apps.calls.states > 0);
    const looks = apps.calls.states;
    let [answerLookUp, answerLook] = [() => {}, () => {}];
    // The key is looked up before it is rotated, and the answer comes while the look is under way.
    apps.waitFor(new Promise<void>((resolve) => (answerLookUp = resolve)));
    const late = node.connect(application.socketKey);
    await eventually(() => apps.calls.lookUp === 2);
    apps.rotate(application);
    apps.waitFor(new Promise<void>((resolve) => (answerLook = resolve)));
    await publisher.publish(application, 'look');
    await eventually(() => apps.calls.states > looks);
    apps.waitFor(undefined);
    answerLookUp();
    await late.ready();
    answerLook();
    expect(await late.closed).toEqual(ROTATED);
  });
});

describe.each([1, 2])('a key that is rotated again and again while clients come (seed %i)', (seed) => {
  it('leaves those of the last one, each of them, and nobody else', async () => {
    const below = seededRandom(seed);
    const nodes = await Promise.all([startNode(apps, redisUrl), startNode(apps, redisUrl)]);
    const publisher = createPublisher(redisUrl);
    const pause = () => new Promise((resolve) => setTimeout(resolve, below(6)));
    const clients: Array<{ key: string; client: TestClient }> = [];
    for (let i = 0; i < 150; i += 1) {
      const key = application.socketKey;
      const client = nodes[below(2)]?.connect(key);
      if (client) clients.push({ key, client });
      if (below(2)) await pause();
      if (below(10) > 0) continue;
      apps.rotate(application);
      if (below(3)) await publisher.publish(application, 'look');
    }
    const last = application.socketKey;
    await eventually(() => {
      for (const { key, client } of clients) expect(client.ws.readyState === client.ws.OPEN).toBe(key === last);
    });
    for (const { key, client } of clients) {
      if (key === last) continue;
      const end = client.frames.length > 0 ? await client.closed : await client.refused;
      expect(end).toMatchObject(client.frames.length > 0 ? ROTATED : { status: 401 });
    }
    await expectOpen(clients.flatMap(({ key, client }) => (key === last ? [client] : [])));
  });
});
