import { eventually } from '@latchkey/testkit/eventually';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startMeasuring } from './metrics/instrument.ts';
import { createSweeper, type Sweep, type SweeperOptions } from './sweeper.ts';
import { memoryLogger } from './testing/memory-logger.ts';

const HOUR_MS = 3_600_000;

/** A sweeper that ends with the test, and what it logged. */
function sweeperOf(sweeps: SweeperOptions['sweeps'], intervalMs: number) {
  const { logger, lines } = memoryLogger();
  const sweeper = createSweeper({ intervalMs, logger, sweeps });
  onTestFinished(() => sweeper.stop());
  return { sweeper, messages: () => lines.map(({ msg }) => msg) };
}

/** A sweep that lasts until it is let end, or is told to. */
function slowSweep() {
  const state = { begun: 0, end: () => {} };
  const sweep: Sweep = (signal) => {
    state.begun += 1;
    return new Promise<void>((resolve, reject) => {
      state.end = resolve;
      signal.addEventListener('abort', () => reject(new Error('told to end')));
    });
  };
  return { state, sweep };
}

describe('a sweeper', () => {
  it('sweeps at the start and each period, and goes on after a failure', async () => {
    let sweeps = 0;
    const failing = () => Promise.reject(new Error('refused'));
    const counting = async () => {
      sweeps += 1;
    };
    const { sweeper } = sweeperOf([failing, counting], 5);
    sweeper.start();
    await eventually(() => sweeps > 3);
  });

  it('does not wait for the period once it is woken, even in the middle of a sweep, and never sweeps twice at once', async () => {
    const { state, sweep } = slowSweep();
    const { sweeper } = sweeperOf([sweep], HOUR_MS);
    sweeper.start();
    sweeper.wake();
    sweeper.wake();
    expect(state.begun).toBe(1);
    state.end();
    await eventually(() => state.begun === 2);
    state.end();
  });

  it('ends when told, at once with what it has in hand, says nothing of that, and begins no more', async () => {
    const { state, sweep } = slowSweep();
    let others = 0;
    const other = async () => {
      others += 1;
    };
    const { sweeper, messages } = sweeperOf([sweep, other], 1);
    sweeper.start();
    sweeper.wake();
    await sweeper.stop();
    sweeper.wake();
    sweeper.start();
    expect([state.begun, others]).toEqual([1, 0]);
    expect(messages()).toEqual([]);
  });

  it('tells of an outage once, however long it is, and of its end', async () => {
    let failures = 0;
    let broken = true;
    const sweep = async () => {
      if (!broken) return;
      failures += 1;
      throw new Error('refused');
    };
    const { sweeper, messages } = sweeperOf([sweep], 1);
    sweeper.start();
    await eventually(() => failures > 3);
    broken = false;
    await eventually(() => messages().length > 1);
    const outage = ['sweep failed, to be tried again', 'sweep succeeds again'];
    expect(messages()).toEqual(outage);
    broken = true;
    await eventually(() => messages().length > 2);
    expect(messages()).toEqual([...outage, outage[0]]);
  });

  it('counts what is done and what failed, and does not take what is cut short by its end for a failure', async () => {
    const recorder = await startMeasuring('test');
    const counts = async () => {
      const text = await recorder.render();
      const of = (outcome: string) =>
        Number(new RegExp(`^latchkey_sweep_runs_total{outcome="${outcome}"} (\\d+)$`, 'm').exec(text)?.[1]);
      return { done: of('done'), failed: of('failed') };
    };
    const { state, sweep } = slowSweep();
    const failing = () => Promise.reject(new Error('refused'));
    const { sweeper } = sweeperOf([async () => undefined, failing, sweep], HOUR_MS);
    expect(await counts()).toEqual({ done: 0, failed: 0 });
    sweeper.start();
    await eventually(() => state.begun === 1);
    await sweeper.stop();
    expect(await counts()).toEqual({ done: 1, failed: 1 });
  });
});
