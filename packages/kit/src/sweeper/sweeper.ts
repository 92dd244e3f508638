import type { Logger } from '../log/logger.ts';
import { Counter } from '../telemetry/metrics.ts';

const runs = new Counter({
  name: 'latchkey_sweep_runs_total',
  help: 'Runs of sweeps, by outcome: done or failed.',
  labels: ['outcome'],
});

export type Sweeper = ReturnType<typeof createSweeper>;

/** One kind of work; it ends soon after the signal aborts. */
export type Sweep = (signal: AbortSignal) => Promise<unknown>;

/**
 * Sweeps at the start, after each interval and when woken, never concurrently; each sweep runs even
 * if one before it failed. Of consecutive failures, the first is logged, and their end.
 */
export function createSweeper(options: { intervalMs: number; logger: Logger; sweeps: readonly Sweep[] }) {
  const { intervalMs, logger, sweeps } = options;
  for (const outcome of ['done', 'failed']) runs.add(0, outcome);
  const stopping = new AbortController();
  const failing = new Set<Sweep>();
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let again = false;
  const sweepOne = async (sweep: Sweep) => {
    try {
      await sweep(stopping.signal);
      runs.add(1, 'done');
      if (failing.delete(sweep)) logger.info('sweep succeeds again');
    } catch (err) {
      if (stopping.signal.aborted) return;
      if (!failing.has(sweep)) logger.warn({ err }, 'sweep failed, to be tried again');
      failing.add(sweep);
      runs.add(1, 'failed');
    }
  };
  const sweepAll = async () => {
    do {
      again = false;
      for (const sweep of sweeps) if (!stopping.signal.aborted) await sweepOne(sweep);
    } while (again && !stopping.signal.aborted);
  };
  const run = () => {
    again = true;
    if (stopping.signal.aborted || running) return;
    clearTimeout(timer);
    running = sweepAll().finally(() => {
      running = undefined;
      if (!stopping.signal.aborted) timer = setTimeout(run, intervalMs);
    });
  };
  return {
    start: run,
    wake: run,
    /** Aborts the current sweep, waits for it, and starts no other. */
    async stop(): Promise<void> {
      stopping.abort();
      clearTimeout(timer);
      await running;
    },
  };
}
