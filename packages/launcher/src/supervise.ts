import { setTimeout as delay } from 'node:timers/promises';
import { DiskFullError, isDiskFull } from '@latchkey/embedded/process/disk-full';
import type { ServerProcess } from '@latchkey/embedded/process/server-process';

export type Supervisable = Pick<ServerProcess, 'pid' | 'exited' | 'stop'>;

interface SuperviseOptions<T extends Supervisable> {
  name: string;
  /** Starts it; `previous` is the one that ended. */
  start: (previous: T | undefined) => Promise<T>;
  onRestart: (line: string) => void;
  /** Called after each start that fails because a disk is full. These starts have no limit. */
  onDiskFull: (err: DiskFullError) => void;
  /** Called once, when the process fails for good. */
  onGiveUp: (line: string) => void;
  /** Failures in a row before that; 5 by default. */
  failuresMax?: number;
  /** First pause before a restart, doubled each time; 250 by default. */
  backoffMs?: number;
  /** Milliseconds as of `performance.now`, the default. */
  clock?: () => number;
}

/** Earlier failures no longer count after it ran for so long. */
const STABLE_AFTER_MS = 60_000;
const BACKOFF_MS = 250;
const BACKOFF_MAX_MS = 5_000;

/** The pause before a try, which doubles with each, in milliseconds. */
export function backoffFor(tries: number, firstMs = BACKOFF_MS): number {
  return Math.min(firstMs * 2 ** Math.min(tries, 30), BACKOFF_MAX_MS);
}

/**
 * Starts a process, and restarts it when it ends.
 *
 * @throws what the first start threw; later ones count as failures
 */
export async function supervise<T extends Supervisable>(options: SuperviseOptions<T>) {
  const { name, failuresMax = 5, backoffMs, clock = () => performance.now() } = options;
  let current = await options.start(undefined);
  const stopping = new AbortController();

  async function watch(): Promise<void> {
    let [tries, failures] = [0, 0];
    for (;;) {
      const startedAt = clock();
      const exit = await current.exited;
      if (stopping.signal.aborted || exit.asked) return;
      if (clock() - startedAt > STABLE_AFTER_MS) [tries, failures] = [0, 0];
      let why = `ended unexpectedly (${exit.signal ?? `exit code ${exit.code}`})`;
      let isFull = exit.lastLines.some(isDiskFull);
      for (let isRunning = false; !isRunning; tries += 1) {
        if (!isFull) failures += 1;
        if (failures > failuresMax) return options.onGiveUp(`${name} can't be kept running: it ${why}.`);
        if (!isFull) options.onRestart(`${name} ${why}; starting it again.`);
        await delay(backoffFor(tries, backoffMs), undefined, { signal: stopping.signal }).catch(() => {});
        if (stopping.signal.aborted) return;
        try {
          current = await options.start(current);
          isRunning = true;
        } catch (err) {
          isFull = err instanceof DiskFullError;
          if (err instanceof DiskFullError) options.onDiskFull(err);
          why = `did not start: ${(err as Error).message.replace(/\.$/, '')}`;
        }
      }
      if (stopping.signal.aborted) return current.stop();
      options.onRestart(`${name} runs again.`);
    }
  }

  const watching = watch();
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
