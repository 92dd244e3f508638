import { eventually } from '@latchkey/testkit/eventually';
import { expect, it, onTestFinished } from 'vitest';
import { startMeasuring } from '../telemetry/metrics.ts';
import { memoryLogger } from '../testing/memory-logger.ts';
import { createSweeper, type Sweep } from './sweeper.ts';

const HOUR_MS = 3_600_000;
const metrics = await startMeasuring('test');

/** A sweeper until the test ends, and what it logged. */
function open(sweeps: readonly Sweep[], intervalMs: number) {
  const { logger, messages } = memoryLogger();
  const sweeper = createSweeper({
    intervalMs,
    logger,
    sweeps: Object.fromEntries(sweeps.map((sweep, i) => [`test_${i}`, sweep])),
  });
  onTestFinished(() => sweeper.stop());
  return { sweeper, messages };
}

/** A sweep that lasts until the test ends it, or it is aborted. */
function slowSweep() {
  const state = { started: 0, end: () => {} };
  const sweep: Sweep = (signal) => {
    state.started += 1;
    return new Promise<void>((resolve, reject) => {
      state.end = resolve;
      signal.addEventListener('abort', () => reject(new Error('aborted')));
    });
  };
  return { state, sweep };
}

async function countRuns() {
  const text = await metrics.render();
  return ['done', 'failed'].map((outcome) =>
    Number(text.split(`latchkey_sweep_runs_total{outcome="${outcome}"} `)[1]?.split('\n')[0]),
  );
}

it('runs every sweep after each interval, and logs and counts an outage of one of them', async () => {
  let [sweeps, isBroken] = [0, true];
  const flaky = () => (isBroken ? Promise.reject(new Error('refused')) : Promise.resolve());
  const counting = async () => {
    sweeps += 1;
  };
  const { sweeper, messages } = open([flaky, counting], 1);
  sweeper.start();
  await eventually(() => sweeps > 3);
  isBroken = false;
  await eventually(() => messages().length > 1);
  isBroken = true;
  await eventually(() => messages().length > 2);
  expect(messages()).toEqual(['sweep failed, to be tried again', 'sweep succeeds again', 'sweep failed, to be tried again']);
  const [done = 0, failed = 0] = await countRuns();
  expect([done > 4, failed > 3]).toEqual([true, true]);
});

it('reports how long a sweep that fails is overdue, also where another of its name succeeds', async () => {
  const { sweeper } = open([() => Promise.reject(new Error('refused')), () => Promise.resolve()], 1);
  const { sweeper: other } = open([() => Promise.resolve()], HOUR_MS);
  sweeper.start();
  other.start();
  const readLag = (text: string, name: string) =>
    Number(text.split(`latchkey_sweep_lag_seconds{sweep="${name}"} `)[1]?.split('\n')[0]);
  let lags: number[] = [];
  await eventually(async () => {
    const text = await metrics.render();
    lags = [readLag(text, 'test_0'), readLag(text, 'test_1')];
    return (lags[0] ?? 0) > 0.3;
  });
  expect(lags[1]).toBeLessThan(lags[0] ?? 0);
  await Promise.all([sweeper.stop(), other.stop()]);
  expect(await metrics.render()).not.toContain('latchkey_sweep_lag_seconds{sweep="test_');
});

it('sweeps when woken, once more for any number of calls during a sweep', async () => {
  const { state, sweep } = slowSweep();
  const { sweeper } = open([sweep], HOUR_MS);
  sweeper.start();
  sweeper.wake();
  sweeper.wake();
  expect(state.started).toBe(1);
  state.end();
  await eventually(() => state.started === 2);
  state.end();
});

it('aborts the current sweep when it stops, neither logs nor counts that, and starts no other', async () => {
  const { state, sweep } = slowSweep();
  let others = 0;
  const other = async () => {
    others += 1;
  };
  const { sweeper, messages } = open([sweep, other], 1);
  const before = await countRuns();
  sweeper.start();
  sweeper.wake();
  await sweeper.stop();
  sweeper.wake();
  sweeper.start();
  expect([state.started, others, messages(), await countRuns()]).toEqual([1, 0, [], before]);
});
