import { setTimeout as delay } from 'node:timers/promises';
import { DiskFullError, saysDiskFull } from '@latchkey/embedded/disk-full';
import type { ProcessExit } from '@latchkey/embedded/server-process';

/** A process that is to be kept running. */
export interface Supervisable {
  readonly pid: number;
  readonly exited: Promise<ProcessExit>;
  stop(): Promise<void>;
}

/** A process that is started again when it ends. */
export interface Supervised<T extends Supervisable> {
  /** The one that runs now, or ran last. */
  readonly current: T;
  stop(): Promise<void>;
}

export interface SuperviseOptions<T extends Supervisable> {
  /** What it is called in messages. */
  name: string;
  /** Starts it, the first time or in the place of one that ended. */
  start: (previous: T | undefined) => Promise<T>;
  onRestart: (line: string) => void;
  /** Called after each start that fails because a disk is full. These starts have no limit. */
  onDiskFull: (err: DiskFullError) => void;
  /** Called once, when it can't be kept running. */
  onGiveUp: (line: string) => void;
  /** How often in a row it may fail before that; 5 by default. */
  failuresMax?: number;
  /** First pause before a restart, doubled each time, in milliseconds; 250 by default. */
  backoffMs?: number;
}

/** Starts since it last ran for a while, and those of them that failed for another reason than a full disk. */
interface Counts {
  tries: number;
  failures: number;
}

/** After running this long, earlier failures no longer count. */
const STABLE_AFTER_MS = 60_000;
const BACKOFF_MS = 250;
const BACKOFF_MAX_MS = 5_000;

/** The pause before a try, which doubles with each, in milliseconds. */
export function backoffFor(tries: number, firstMs = BACKOFF_MS): number {
  return Math.min(firstMs * 2 ** Math.min(tries, 30), BACKOFF_MAX_MS);
}

/**
 * Starts a process and keeps it running.
 *
 * @throws what the first start threw; later ones count as failures.
 */
export async function supervise<T extends Supervisable>(options: SuperviseOptions<T>): Promise<Supervised<T>> {
  let current = await options.start(undefined);
  const stopping = new AbortController();
  const watching = watch();

  async function watch(): Promise<void> {
    const counts: Counts = { tries: 0, failures: 0 };
    for (;;) {
      const startedAt = performance.now();
      const exit = await current.exited;
      if (stopping.signal.aborted || exit.asked) return;
      if (performance.now() - startedAt > STABLE_AFTER_MS) Object.assign(counts, { tries: 0, failures: 0 });
      if (!(await restart(counts, exit))) return;
    }
  }

  /** @returns whether it runs again; otherwise it never will */
  async function restart(counts: Counts, exit: ProcessExit): Promise<boolean> {
    const { name, failuresMax = 5, backoffMs } = options;
    let why = describeExit(exit);
    for (let isDiskFull = exit.lastLines.some(saysDiskFull); ; counts.tries += 1) {
      if (!isDiskFull) counts.failures += 1;
      if (counts.failures > failuresMax) break;
      if (!isDiskFull) options.onRestart(`${name} ${why}; starting it again.`);
      await delay(backoffFor(counts.tries, backoffMs), undefined, { signal: stopping.signal }).catch(() => {});
      if (stopping.signal.aborted) return false;
      try {
        current = await options.start(current);
        if (stopping.signal.aborted) await current.stop();
        else options.onRestart(`${name} runs again.`);
        counts.tries += 1;
        return true;
      } catch (err) {
        isDiskFull = err instanceof DiskFullError;
        if (err instanceof DiskFullError) options.onDiskFull(err);
        why = `did not start: ${(err as Error).message.replace(/\.$/, '')}`;
      }
    }
    options.onGiveUp(`${name} can't be kept running: it ${why}.`);
    return false;
  }

  return {
    get current() {
      return current;
    },
    stop: async () => {
      stopping.abort();
      await current.stop();
      await watching;
    },
  };
}

function describeExit({ code, signal }: ProcessExit): string {
  return `ended unexpectedly (${signal ?? `exit code ${code}`})`;
}
