import { eventually } from '@latchkey/testkit/eventually';
import { type OwnRedis, startOwnRedis } from '@latchkey/testkit/own-redis';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { type FakeApplication, FakeApps } from './testing/fake-apps.ts';
import type { TestClient } from './testing/test-client.ts';
import { startNode, startRelay } from './testing/test-node.ts';

/** Promises R6 and R9: Redis only carries. Without it clients hear by the look, every second here; with it, at once. */
const HEARD_MS_MAX = 2_000;
const AT_ONCE_MS_MAX = 500;
const NEVER = { reconcileMs: 3_600_000 };
const PATIENCE = { timeoutMs: 15_000 };

let redis: OwnRedis;
let apps: FakeApps;
let application: FakeApplication;
beforeAll(async () => {
  redis = await startOwnRedis();
});
afterAll(() => redis.remove());
beforeEach(async () => {
  apps = new FakeApps();
  application = apps.create();
  await redis.empty();
});

const faults = [
  { what: 'gone', breakIt: () => redis.stop(), mend: () => redis.start(), cutsOff: true },
  { what: 'frozen', breakIt: async () => redis.freeze(), mend: async () => redis.thaw(), cutsOff: false },
  { what: 'emptied', breakIt: () => redis.empty(), mend: async () => undefined, cutsOff: false },
];

const upTo = (last: number) => Array.from({ length: last }, (_, i) => i + 1);

/** Resolves once all have heard all of the log, each event once and in order; answers after how many milliseconds. */
async function heard(clients: readonly TestClient[], options = {}): Promise<number> {
  const startedAt = performance.now();
  const all = upTo(application.lastSequence);
  await eventually(
    () => {
      for (const client of clients) expect(client.sequences()).toEqual(all);
    },
    { intervalMs: 2, ...options },
  );
  return performance.now() - startedAt;
}

async function openNodes(env?: object) {
  const nodes = await Promise.all([startNode(apps, redis.url, env), startNode(apps, redis.url, env)]);
  const clients = nodes.map((node) => node.connect(application.socketKey));
  await Promise.all(clients.map((client) => client.ready()));
  return { nodes, clients };
}

async function median(count: number, measure: () => Promise<number>): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < count; i += 1) times.push(await measure());
  return times.toSorted((a, b) => a - b)[Math.floor(count / 2)] ?? Number.POSITIVE_INFINITY;
}

describe.each(faults)('with Redis $what', ({ what, breakIt, mend, cutsOff }) => {
  let isBroken = false;
  const broken = async () => {
    onTestFinished(() => mended());
    isBroken = true;
    await breakIt();
  };
  const mended = async () => {
    if (isBroken) await mend();
    isBroken = false;
  };

  it('all clients hear in time, in order, each event once; and at once again when it is back', async () => {
    const { clients } = await openNodes();
    const relay = startRelay(redis.url);
    await relay.relay(application, apps.logVersion(application));
    await heard(clients);
    await broken();
    const slowest = [];
    for (let i = 0; i < 3; i += 1) {
      apps.logVersion(application);
      apps.logVersion(application);
      slowest.push(await heard(clients));
    }
    expect(Math.max(...slowest)).toBeLessThan(HEARD_MS_MAX);
    await mended();
    // The apps service's relay sends then what it could not send before, which clients have heard.
    await relay.relay(application, ...application.events);
    await eventually(async () => {
      await relay.relay(application, apps.logVersion(application));
      expect(await heard(clients)).toBeLessThan(AT_ONCE_MS_MAX);
    }, PATIENCE);
  });

  it('subscriptions are back when it is: clients hear at once what is told then, and what was missed, without a look', async () => {
    const { clients } = await openNodes(NEVER);
    const relay = startRelay(redis.url);
    await relay.relay(application, apps.logVersion(application));
    await heard(clients);
    await broken();
    for (let i = 0; i < 5; i += 1) apps.logVersion(application);
    await mended();
    // Whoever was cut off looks once it is back, though nobody tells of anything.
    if (cutsOff) await heard(clients, PATIENCE);
    await relay.relay(application, apps.logVersion(application));
    await heard(clients, PATIENCE);
    await looksAreOver();
    const looks = apps.calls.states;
    const typical = await median(5, async () => {
      await relay.relay(application, apps.logVersion(application));
      return heard(clients);
    });
    expect(typical).toBeLessThan(AT_ONCE_MS_MAX);
    expect(apps.calls.states).toBe(looks);
  });

  it('a node starts, lets clients in, tells them in time, and stops soon', async () => {
    await broken();
    const startedAt = performance.now();
    const { nodes, clients } = await openNodes();
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    await nodes[0]?.service.checkReady();
    apps.logVersion(application);
    expect(await heard(clients)).toBeLessThan(HEARD_MS_MAX);
    const back = nodes[0]?.connect(application.socketKey, { lastEventId: '0' });
    await heard(back ? [back] : []);
    const stoppedAt = performance.now();
    await nodes[0]?.service.stop();
    expect(performance.now() - stoppedAt).toBeLessThan(8_000);
    expect(await clients[0]?.closed).toMatchObject({ code: 1001 });
    await mended();
    const relay = startRelay(redis.url);
    const left = clients.slice(1);
    await eventually(async () => {
      await relay.relay(application, apps.logVersion(application));
      expect(await heard(left), what).toBeLessThan(AT_ONCE_MS_MAX);
    }, PATIENCE);
  });
});

/** Resolves when no node has looked for a moment: those that each had to make after it was back have been made. */
async function looksAreOver(): Promise<void> {
  let [looks, since] = [apps.calls.states, performance.now()];
  await eventually(() => {
    if (apps.calls.states !== looks) [looks, since] = [apps.calls.states, performance.now()];
    return performance.now() - since > 300;
  }, PATIENCE);
}
