import type { Logger } from '@latchkey/kit/logger';

/** Work that is done again and again behind the scenes. */
export interface Sweeper {
  start(): void;
  /** Sweeps soon, without waiting for the period to end. */
  wake(): void;
  /** Ends the sweep under way after what it has in hand, and begins no other. */
  stop(): Promise<void>;
}

/** What to do each time, and how often. */
export interface SweeperOptions {
  readonly intervalMs: number;
  readonly logger: Logger;
  /** Each is done, even if one before it failed. */
  readonly sweeps: ReadonlyArray<(signal: AbortSignal) => Promise<unknown>>;
}

/** Sweeps at the start, then whenever it is woken or a period has passed; never twice at once. */
export function createSweeper({ intervalMs, logger, sweeps }: SweeperOptions): Sweeper {
  const stopping = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let again = false;
  const sweep = async () => {
    do {
      again = false;
      for (const one of sweeps) {
        if (stopping.signal.aborted) return;
        await one(stopping.signal).catch((err: unknown) => logger.warn({ err }, 'sweep failed, to be tried again'));
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
    running = sweep().finally(() => {
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
