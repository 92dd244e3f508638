import type { Logger } from './logger.ts';
import { Counter } from './metrics/instrument.ts';

const runs = new Counter({
  name: 'latchkey_sweep_runs_total',
  help: 'Looks of sweepers for what there is to do, by outcome: done or failed.',
  labels: ['outcome'],
});

/** Work that is done again and again behind the scenes. */
export interface Sweeper {
  start(): void;
  /** Sweeps soon, without waiting for the period to end. */
  wake(): void;
  /** Tells the sweep under way to end, waits for it, and begins no other. */
  stop(): Promise<void>;
}

/** One thing to do each time; it is to end soon once the signal aborts. */
export type Sweep = (signal: AbortSignal) => Promise<unknown>;

/** What to do each time, and how often. */
export interface SweeperOptions {
  readonly intervalMs: number;
  readonly logger: Logger;
  /** Each is done, even if one before it failed. */
  readonly sweeps: readonly Sweep[];
}

/**
 * Sweeps at the start, then whenever it is woken or a period has passed; never twice at once. Of failures one after the other, the first is logged,
 * and their end.
 */
export function createSweeper({ intervalMs, logger, sweeps }: SweeperOptions): Sweeper {
  for (const outcome of ['done', 'failed']) runs.add(0, outcome);
  const stopping = new AbortController();
  const failing = new Set<Sweep>();
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let again = false;
  const sweepOne = async (one: Sweep) => {
    try {
      await one(stopping.signal);
      runs.add(1, 'done');
      if (failing.delete(one)) logger.info('sweep succeeds again');
    } catch (err) {
      // What is cut short by a stop is no failure.
      if (stopping.signal.aborted) return;
      if (!failing.has(one)) logger.warn({ err }, 'sweep failed, to be tried again');
      failing.add(one);
      runs.add(1, 'failed');
    }
  };
  const sweepAll = async () => {
    do {
      again = false;
      for (const one of sweeps) {
        if (stopping.signal.aborted) return;
        await sweepOne(one);
      }
    } while (again);
  };
  const run = () => {
    if (stopping.signal.aborted) return;
    if (running) {
      again = true;
      return;
    }
    clearTimeout(timer);
    running = sweepAll().finally(() => {
      running = undefined;
      if (!stopping.signal.aborted) timer = setTimeout(run, intervalMs);
    });
  };
  return {
    start: run,
    wake: run,
    async stop() {
      stopping.abort();
      clearTimeout(timer);
      await running;
    },
  };
}
