import type { Logger } from '../log/logger.ts';
import { Counter, Gauge } from '../telemetry/metrics.ts';

const runs = new Counter({
  name: 'latchkey_sweep_runs_total',
  help: 'Runs of sweeps, by outcome: done or failed.',
  labels: ['outcome'],
});

const lag = new Gauge({
  name: 'latchkey_sweep_lag_seconds',
  help: 'Time that the next complete run of a sweep is overdue; 0 while it keeps its interval.',
  labels: ['sweep'],
});

interface Schedule {
  readonly name: string;
  readonly intervalMs: number;
  /** Start of the last run that was completed, as `performance.now()` counts. */
  completeAt: number;
}

/** The services of a process may have sweeps of one name. */
const schedules = new Set<Schedule>();
lag.watch(() => {
  const now = performance.now();
  const overdue = new Map<string, number>();
  for (const { name, intervalMs, completeAt } of schedules)
    overdue.set(name, Math.max(overdue.get(name) ?? 0, (now - completeAt - intervalMs) / 1_000));
  return [...overdue].map(([name, seconds]) => [seconds, name] as const);
});

export type Sweeper = ReturnType<typeof createSweeper>;

/** One kind of work; it ends soon after the signal aborts. */
export type Sweep = (signal: AbortSignal) => Promise<unknown>;

/** Deletes batches until one has fewer rows than `size`, or the signal aborts. */
export async function deleteInBatches(size: number, signal: AbortSignal, deleteBatch: (size: number) => Promise<number>) {
  while (!signal.aborted && (await deleteBatch(size)) >= size);
}

/**
 * Sweeps at the start, after each interval and when woken, never concurrently; each sweep runs even
 * if one before it failed. Of consecutive failures, the first is logged, and their end.
 *
 * @param options `sweeps` by their names in metrics
 */
export function createSweeper(options: { intervalMs: number; logger: Logger; sweeps: Readonly<Record<string, Sweep>> }) {
  const { intervalMs, logger } = options;
  const sweeps = Object.entries(options.sweeps).map(([name, sweep]) => ({ name, intervalMs, completeAt: 0, sweep }));
  for (const outcome of ['done', 'failed']) runs.add(0, outcome);
  const stopping = new AbortController();
  const failing = new Set<Schedule>();
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let again = false;
  const sweepOne = async (each: (typeof sweeps)[number]) => {
    const startedAt = performance.now();
    try {
      await each.sweep(stopping.signal);
      each.completeAt = startedAt;
      runs.add(1, 'done');
      if (failing.delete(each)) logger.info('sweep succeeds again');
    } catch (err) {
      if (stopping.signal.aborted) return;
      if (!failing.has(each)) logger.warn({ err, name: each.name }, 'sweep failed, to be tried again');
      failing.add(each);
      runs.add(1, 'failed');
    }
  };
  const sweepAll = async () => {
    do {
      again = false;
      for (const each of sweeps) if (!stopping.signal.aborted) await sweepOne(each);
    } while (again && !stopping.signal.aborted);
  };
  const run = () => {
    again = true;
    if (stopping.signal.aborted || running) return;
    clearTimeout(timer);
    for (const each of sweeps) {
      if (!schedules.has(each)) each.completeAt = performance.now();
      schedules.add(each);
    }
    running = sweepAll().finally(() => {
      running = undefined;
      if (!stopping.signal.aborted) timer = setTimeout(run, intervalMs);
    });
  };
  let isStarted = false;
  return {
    start(): void {
      isStarted = true;
      run();
    },
    /** Sweeps soon; before the start it does nothing. */
    wake(): void {
      if (isStarted) run();
    },
    /** Aborts the current sweep, waits for it, and starts no other. */
    async stop(): Promise<void> {
      stopping.abort();
      clearTimeout(timer);
      for (const each of sweeps) schedules.delete(each);
      await running;
    },
  };
}
