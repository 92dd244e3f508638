import { setTimeout as delay } from 'node:timers/promises';
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
  /** Called once, when it can't be kept running. */
  onGiveUp: (line: string) => void;
  /** How often in a row it may fail before that; 5 by default. */
  failuresMax?: number;
  /** First pause before a restart, doubled each time, in milliseconds; 250 by default. */
  backoffMs?: number;
}

/** After running this long, earlier failures no longer count. */
const STABLE_AFTER_MS = 60_000;
const BACKOFF_MAX_MS = 5_000;

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
    let failures = 0;
    for (;;) {
      const startedAt = performance.now();
      const exit = await current.exited;
      if (stopping.signal.aborted || exit.asked) return;
      if (performance.now() - startedAt > STABLE_AFTER_MS) failures = 0;
      const restarted = await restart(failures, describeExit(exit));
      if (restarted === undefined) return;
      failures = restarted;
    }
  }

  /** @returns how many failures there have been in a row, once it runs again; nothing when it never will. */
  async function restart(failuresBefore: number, reason: string): Promise<number | undefined> {
    const { name, failuresMax = 5, backoffMs = 250 } = options;
    let why = reason;
    for (let failures = failuresBefore + 1; failures <= failuresMax; failures += 1) {
      options.onRestart(`${name} ${why}; starting it again.`);
      await delay(Math.min(backoffMs * 2 ** (failures - 1), BACKOFF_MAX_MS), undefined, { signal: stopping.signal }).catch(
        () => {},
      );
      if (stopping.signal.aborted) return undefined;
      try {
        current = await options.start(current);
        if (stopping.signal.aborted) await current.stop();
        else options.onRestart(`${name} runs again.`);
        return failures;
      } catch (err) {
        why = `did not start: ${(err as Error).message.replace(/\.$/, '')}`;
      }
    }
    options.onGiveUp(`${name} can't be kept running: it ${why}.`);
    return undefined;
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
