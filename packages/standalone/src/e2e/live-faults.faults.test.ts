import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '@latchkey/testkit/eventually';
import { startOwnRedis } from '@latchkey/testkit/own-redis';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { createApplication, createKey, signUp } from '../testing/caller.ts';
import { LiveClient, readSocketKey, setSetting } from '../testing/live.ts';
import { LiveFleet } from '../testing/live-fleet.ts';
import { type OwnInstance, type OwnInstanceOptions, startInstanceForTest } from '../testing/own-instance.ts';
import { serviceProcessesOf } from '../testing/processes-on.ts';
import { SeededRandom } from '../testing/random.ts';
import '../testing/provided.ts';

/** Promises R6, R8 and R9 for live events, with processes that are killed, stopped and left without Redis. `FAULT_MINUTES` makes them longer. */
const IS_LONG = process.env.FAULT_MINUTES !== undefined;
const IS_DEPLOYED = inject('latchkeyInstance').shape === 'deployed';
const REDIS_DOWN_MS = IS_LONG ? 20_000 : 5_000;
const RECONNECT_DELAY_MS_MAX = 1_000;
/** What the look takes to find an event, EVENT_LOOK_SECONDS, and a second for a machine with other work to do. */
const HEARD_MS_MAX = 3_000;
const PATIENCE = { timeoutMs: 30_000, intervalMs: 50 };
const TEST_TIMEOUT_MS = 120_000;

async function start(options: OwnInstanceOptions = {}) {
  const instance = await startInstanceForTest(options);
  const { api } = await createKey(await signUp(instance.api));
  const applicationId = await createApplication(api);
  const socketKey = await readSocketKey(api, applicationId);
  let changes = 0;
  /** Makes another version, and answers when that was answered. */
  const change = async (mayFail = false) => {
    const { status } = await setSetting(api, applicationId, 'version', `v${changes + 1}`, mayFail);
    if (status === 200) changes += 1;
    else if (!mayFail) throw new Error(`A change was answered ${status}`);
    return performance.now();
  };
  const listen = async () => {
    const client = new LiveClient(instance.realtimeUrl, socketKey);
    onTestFinished(() => client.ws.terminate());
    await client.ready();
    return client;
  };
  const read = () => api.get('/api/v1/panel/get-application-settings', { applicationId });
  return { instance, socketKey, change, listen, read, changes: () => changes };
}

function startFleet({ instance, socketKey }: Awaited<ReturnType<typeof start>>, count: number, reconnectDelayMsMax: number) {
  const { realtimeUrl: url } = instance;
  const fleet = new LiveFleet({ url, socketKey, count, random: new SeededRandom(count), reconnectDelayMsMax });
  onTestFinished(() => fleet.stop());
  return fleet;
}

function pidOf({ pid }: OwnInstance, name: string): number | undefined {
  return serviceProcessesOf(pid).find(([service]) => service === name)?.[1];
}

/** Figures, for those who ask for the long form. */
function report(what: string, ms: number): void {
  if (IS_LONG) process.stdout.write(`${inject('latchkeyInstance').shape}: ${what}: ${ms.toFixed(0)} ms\n`);
}

const upTo = (last: number) => Array.from({ length: last }, (_, i) => i + 1);

it(
  'while Redis is gone every change is heard in time, in order; and at once when it is back',
  async () => {
    const redis = await startOwnRedis();
    onTestFinished(() => redis.remove());
    const own = await start({ redisUrl: redis.url });
    const client = await own.listen();
    const answeredAt = [await own.change()];
    await eventually(() => client.events.length === 1, PATIENCE);
    await redis.stop();
    const downUntil = performance.now() + REDIS_DOWN_MS;
    while (performance.now() < downUntil) {
      answeredAt.push(await own.change());
      await delay(100);
    }
    await redis.start();
    const backAt = performance.now();
    await eventually(() => expect(client.sequences()).toEqual(upTo(own.changes())), PATIENCE);
    const waits = answeredAt.map((at, i) => (client.events[i]?.receivedAt ?? Number.POSITIVE_INFINITY) - at);
    report('slowest of those heard without Redis', Math.max(...waits));
    expect(Math.max(...waits)).toBeLessThan(HEARD_MS_MAX);
    // By the look it would take a second, on average.
    await eventually(async () => {
      for (let i = 0; i < 3; i += 1) {
        const at = await own.change();
        await eventually(() => client.events.length === own.changes(), { intervalMs: 5 });
        expect((client.events.at(-1)?.receivedAt ?? Number.POSITIVE_INFINITY) - at).toBeLessThan(200);
      }
    }, PATIENCE);
    report('at once again after its return, by then', performance.now() - backAt);
    expect(client.sequences()).toEqual(upTo(own.changes()));
  },
  TEST_TIMEOUT_MS,
);

it(
  'SIGTERM closes each of 200 connections with 1001, spread over time, and everything ends with code 0',
  async () => {
    const own = await start();
    const fleet = startFleet(own, 200, 60_000);
    await eventually(() => fleet.connected === 200, PATIENCE);
    const startedAt = performance.now();
    await own.instance.stop();
    expect(await own.instance.exited).toBe(0);
    report('stop with 200 connections', performance.now() - startedAt);
    await eventually(() => fleet.closes.length === 200, PATIENCE);
    expect(new Set(fleet.closes.map(({ code }) => code))).toEqual(new Set([1001]));
    const times = fleet.closes.map(({ at }) => at).toSorted((a, b) => a - b);
    const spreadMs = (times.at(-1) ?? 0) - (times[0] ?? 0);
    report('spread of 200 closes', spreadMs);
    expect(spreadMs).toBeGreaterThan(100);
  },
  TEST_TIMEOUT_MS,
);

describe.runIf(IS_DEPLOYED)('in the deployed shape', () => {
  it(
    'a realtime process that is killed with 1,000 connections takes nothing with it: all come back and miss nothing',
    async () => {
      const own = await start();
      const fleet = startFleet(own, 1_000, RECONNECT_DELAY_MS_MAX);
      await eventually(() => fleet.connected === 1_000, PATIENCE);
      const [working, rests] = [new AbortController(), [] as number[]];
      // REST goes on all the while: each of these has to succeed.
      const work = (async () => {
        while (!working.signal.aborted) {
          await own.change();
          const sentAt = performance.now();
          expect((await own.read()).status).toBe(200);
          rests.push(performance.now() - sentAt);
          await delay(50);
        }
      })();
      await eventually(() => own.changes() >= 5, PATIENCE);
      const pid = pidOf(own.instance, 'realtime');
      process.kill(pid ?? 0, 'SIGKILL');
      const killedAt = performance.now();
      await eventually(() => fleet.connected < 1_000, PATIENCE);
      await eventually(() => fleet.connected === 1_000, PATIENCE);
      report('1,000 connected again after kill -9 of realtime', performance.now() - killedAt);
      expect(pidOf(own.instance, 'realtime')).not.toBe(pid);
      working.abort();
      await work;
      await own.change();
      const last = own.changes();
      await eventually(() => fleet.caughtUp(last) === 1_000, PATIENCE);
      expect(fleet.flaws).toEqual([]);
      expect(fleet.closes).toHaveLength(1_000);
      report('slowest GET meanwhile', Math.max(...rests));
    },
    TEST_TIMEOUT_MS,
  );

  it(
    'an apps process that is killed right after a change was answered takes nothing with it: nobody is closed, all hear',
    async () => {
      const own = await start();
      const clients = [await own.listen(), await own.listen()];
      for (let i = 0; i < 3; i += 1) {
        const pid = pidOf(own.instance, 'apps');
        await own.change();
        process.kill(pid ?? 0, 'SIGKILL');
        const killedAt = performance.now();
        await eventually(() => {
          for (const client of clients) expect(client.sequences()).toEqual(upTo(own.changes()));
        }, PATIENCE);
        report('heard after kill -9 of apps', performance.now() - killedAt);
        await eventually(async () => expect((await own.read().catch(() => undefined))?.status).toBe(200), PATIENCE);
      }
      for (const { ws } of clients) expect(ws.readyState).toBe(ws.OPEN);
    },
    TEST_TIMEOUT_MS,
  );
});
