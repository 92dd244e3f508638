import { eventually } from '@latchkey/testkit/eventually';
import { seededRandom } from '@latchkey/testkit/random';
import { testRedis } from '@latchkey/testkit/redis';
import { beforeEach, describe, expect, it } from 'vitest';
import { createPublisher } from '../testing/channel-publisher.ts';
import { type FakeApplication, FakeApps } from '../testing/fake-apps.ts';
import { startNode, startRelay } from '../testing/test-node.ts';

/** Decisions 10: a deletion is told of, then connections are closed with 4102 on every node, and what comes after is refused. */
const DELETED = { code: 4102, reason: 'application deleted' };
const REFUSED = { status: 401, body: { success: false, code: 'api_key_invalid' } };
const NEVER = { reconcileMs: 3_600_000 };

let apps: FakeApps;
let redisUrl: string;
let application: FakeApplication;
beforeEach(async () => {
  apps = new FakeApps();
  redisUrl = (await testRedis()).url;
  application = apps.create();
});

const logDeletion = () => apps.log(application, { case: 'deleted', value: {} });

async function openOn(nodeCount: number, env?: object) {
  const nodes = await Promise.all(Array.from({ length: nodeCount }, () => startNode(apps, redisUrl, env)));
  const clients = nodes.flatMap((node) => [node.connect(application.socketKey), node.connect(application.socketKey)]);
  await Promise.all(clients.map((client) => client.ready()));
  return { nodes, clients };
}

describe('a deletion', () => {
  it('comes after all that came before, closes every connection on every node, and refuses who comes after', async () => {
    const { nodes, clients } = await openOn(3, NEVER);
    const relay = startRelay(redisUrl);
    const [first, last] = [apps.logVersion(application), logDeletion()];
    await relay.relay(application, last, first);
    for (const client of clients) {
      expect(await client.closed).toEqual(DELETED);
      expect(client.sequences()).toEqual([1, 2]);
      expect(client.frames.at(-1)).toMatchObject({ type: 'latchkey.application.deleted', data: {} });
    }
    for (const node of nodes) expect(await node.connect(application.socketKey).refused).toMatchObject(REFUSED);
  });

  it('nobody was told of is found by a look', async () => {
    const { clients } = await openOn(2);
    apps.logVersion(application);
    logDeletion();
    const deletedAt = performance.now();
    for (const client of clients) {
      expect(await client.closed).toEqual(DELETED);
      expect(client.sequences()).toEqual([1, 2]);
    }
    expect(performance.now() - deletedAt).toBeLessThan(2_000);
  });

  it('whose event is no longer in the log closes all the same', async () => {
    const { nodes, clients } = await openOn(2);
    logDeletion();
    apps.trim(application, application.lastSequence);
    for (const client of clients) {
      expect(await client.closed).toEqual(DELETED);
      expect(client.sequences()).toEqual([]);
    }
    for (const node of nodes) expect(await node.connect(application.socketKey).refused).toMatchObject(REFUSED);
  });

  it('of one application closes no other’s connections', async () => {
    const other = apps.create();
    const { nodes, clients } = await openOn(1);
    const bystander = nodes[0]?.connect(other.socketKey);
    await bystander?.ready();
    logDeletion();
    await Promise.all(clients.map(({ closed }) => closed));
    await createPublisher(redisUrl).tell(other, apps.logVersion(other));
    await eventually(() => expect(bystander?.sequences()).toEqual([1]));
  });
});

describe.each([1, 2])('a deletion while clients come (seed %i)', (seed) => {
  it('leaves each of them refused, or told and closed', async () => {
    const below = seededRandom(seed);
    const node = await startNode(apps, redisUrl, NEVER);
    const publisher = createPublisher(redisUrl);
    for (let i = 0; i < 40; i += 1) {
      application = apps.create();
      const clients = Array.from({ length: 3 }, () => node.connect(application.socketKey));
      for (let turns = below(30); turns > 0; turns -= 1) await new Promise((resolve) => setImmediate(resolve));
      await publisher.tell(application, logDeletion());
      for (const client of clients) {
        const end = await Promise.any([client.closed, client.refused]);
        if (client.frames.length === 0) expect(end).toMatchObject(REFUSED);
        else expect([end, client.sequences()]).toEqual([DELETED, [1]]);
      }
    }
  });
});
