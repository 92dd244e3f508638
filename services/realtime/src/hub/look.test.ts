import { Code, ConnectError } from '@connectrpc/connect';
import { eventually } from '@latchkey/testkit/eventually';
import { seededRandom } from '@latchkey/testkit/random';
import { testRedis } from '@latchkey/testkit/redis';
import { beforeEach, describe, expect, it } from 'vitest';
import { createPublisher } from '../testing/channel-publisher.ts';
import { FakeApps } from '../testing/fake-apps.ts';
import { startNode, type TestNode } from '../testing/test-node.ts';
import { type Call, withTrouble } from '../testing/trouble.ts';

/** Promises R6 and R9: what apps does, or fails to do, closes nobody's connection, and keeps nobody waiting whom it does not concern. */
const MANY = 60;

let apps: FakeApps;
let redisUrl: string;
beforeEach(async () => {
  apps = new FakeApps();
  redisUrl = (await testRedis()).url;
});

async function hold(node: TestNode, count: number) {
  const held = Array.from({ length: count }, () => {
    const application = apps.create();
    return { application, client: node.connect(application.socketKey) };
  });
  await Promise.all(held.map(({ client }) => client.ready()));
  return held;
}

describe('applications whose events can not be read', () => {
  it('keep no other waiting, and are told of once, until they can', async () => {
    const doomed = new Set<string>();
    const trouble = ({ method, request }: Call) => {
      if (method === 'ListApplicationEvents' && doomed.has(request.applicationId)) throw new ConnectError('no', Code.Internal);
    };
    const node = await startNode(withTrouble(apps.transport, trouble), redisUrl);
    const held = await hold(node, MANY);
    const [broken, others] = [held.slice(0, MANY / 2), held.slice(MANY / 2)];
    for (const { application } of broken) doomed.add(application.id);
    for (const { application } of held) apps.logVersion(application);
    await eventually(() => {
      for (const { client } of others) expect(client.sequences()).toEqual([1]);
    });
    const states = apps.calls.states;
    await eventually(() => apps.calls.states >= states + 2);
    for (const { client } of broken) expect([client.ws.readyState, client.sequences()]).toEqual([client.ws.OPEN, []]);
    doomed.clear();
    await eventually(() => {
      for (const { client } of held) expect(client.sequences()).toEqual([1]);
    });
    await eventually(() =>
      expect(warnings(node)).toEqual(['reconciliation fails, to be retried', 'reconciliation succeeds again']),
    );
  });
});

describe('many applications that have events at once', () => {
  it('are not read one after the other', async () => {
    let isSlow = false;
    const trouble = async ({ method }: Call) => {
      // As an apps service far away answers.
      if (isSlow && method === 'ListApplicationEvents') await new Promise((resolve) => setTimeout(resolve, 100));
    };
    const node = await startNode(withTrouble(apps.transport, trouble), redisUrl);
    const held = await hold(node, MANY);
    isSlow = true;
    for (const { application } of held) apps.logVersion(application);
    const startedAt = performance.now();
    await eventually(() => {
      for (const { client } of held) expect(client.sequences()).toEqual([1]);
    });
    expect(performance.now() - startedAt).toBeLessThan(2_500);
  });
});

describe('while apps is away', () => {
  it('nobody is closed; all hear afterwards, in order; and it is told of once', async () => {
    const nodes = await Promise.all([startNode(apps, redisUrl), startNode(apps, redisUrl)]);
    const held = (await Promise.all(nodes.map((node) => hold(node, 5)))).flat();
    apps.failWith(new ConnectError('away', Code.Unavailable));
    for (const { application } of held) for (let i = 0; i < 3; i += 1) apps.logVersion(application);
    const states = apps.calls.states;
    await eventually(() => apps.calls.states >= states + 6, { timeoutMs: 10_000 });
    const stranger = nodes[0].connect(held[0]?.application.socketKey);
    expect(await stranger.refused).toMatchObject({ status: 503, body: { success: false, code: 'INTERNAL_ERROR' } });
    for (const { client } of held) expect([client.ws.readyState, client.sequences()]).toEqual([client.ws.OPEN, []]);
    apps.failWith(undefined);
    const returnedAt = performance.now();
    await eventually(() => {
      for (const { client } of held) expect(client.sequences()).toEqual([1, 2, 3]);
    });
    expect(performance.now() - returnedAt).toBeLessThan(2_000);
    for (const node of nodes) {
      await eventually(() =>
        expect(warnings(node)).toEqual(['reconciliation fails, to be retried', 'reconciliation succeeds again']),
      );
    }
  });
});

describe('an event that is committed and told of between the look-up of a client and its subscription', () => {
  it('is heard as soon as the client is there, though nothing follows it', async () => {
    const node = await startNode(apps, redisUrl, { reconcileMs: 3_600_000 });
    const application = apps.create();
    let answer = () => {};
    apps.waitFor(new Promise<void>((resolve) => (answer = resolve)));
    const client = node.connect(application.socketKey);
    await eventually(() => apps.calls.lookUp === 1);
    await createPublisher(redisUrl).tell(application, apps.logVersion(application));
    apps.waitFor(undefined);
    answer();
    expect((await client.ready()).data).toMatchObject({ lastSequence: '0', version: '1.0' });
    await eventually(() => expect(client.sequences()).toEqual([1]));
  });
});

describe.each([1, 2, 3])('a hub that is opened while events are committed (seed %i)', (seed) => {
  it('misses none and sends none twice: what comes after the look-up follows its snapshot', async () => {
    const below = seededRandom(seed);
    const node = await startNode(apps, redisUrl, { reconcileMs: 3_600_000 });
    const publisher = createPublisher(redisUrl);
    const pause = () => new Promise((resolve) => (below(2) ? setImmediate(resolve) : setTimeout(resolve, below(4))));
    const open = async () => {
      const application = apps.create();
      for (let i = below(3); i > 0; i -= 1) apps.logVersion(application);
      const client = node.connect(application.socketKey);
      for (let i = below(8); i > 0; i -= 1) await pause();
      for (let i = 1 + below(3); i > 0; i -= 1) {
        const event = apps.logVersion(application);
        await pause();
        await publisher.tell(application, event);
        await pause();
      }
      return { application, client };
    };
    for (let batch = 0; batch < 5; batch += 1) {
      const opened = await Promise.all(Array.from({ length: 20 }, open));
      await eventually(() => {
        for (const { application, client } of opened) {
          const { lastSequence, version } = client.frames[0]?.data ?? {};
          const first = Number(lastSequence);
          expect(version).toBe(first === 0 ? '1.0' : `2.${first}`);
          expect(client.sequences()).toEqual(Array.from({ length: application.lastSequence - first }, (_, i) => first + 1 + i));
        }
      });
    }
  });
});

const warnings = ({ lines }: TestNode) =>
  lines.map(({ msg }) => msg as string).filter((msg) => msg.startsWith('reconciliation '));
