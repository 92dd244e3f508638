import type { Logger } from '@latchkey/kit/logger';
import { type Trimming, trimEvents } from './retention.ts';

/** Trims the event log again and again, behind the scenes. */
export interface Trimmer {
  start(): void;
  /** Ends the round under way after what it has in hand, and begins no other. */
  stop(): Promise<void>;
}

const INTERVAL_MS = 5 * 60_000;

/**
 * Trims at the start, then whenever a period has passed since the end of the round before; never twice at once. A round that fails is made good by the next.
 *
 * @param intervalMs wait between two rounds, five minutes unless set
 */
export function createTrimmer(trimming: Trimming, logger: Logger, intervalMs = INTERVAL_MS): Trimmer {
  const stopping = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let isFailing = false;

  async function trim(): Promise<void> {
    try {
      await trimEvents(trimming, stopping.signal);
      if (isFailing) logger.info('events are trimmed again');
      isFailing = false;
    } catch (err) {
      if (!isFailing) logger.warn({ err }, 'events wait to be trimmed');
      isFailing = true;
    }
  }

  function run(): void {
    if (stopping.signal.aborted) return;
    running = trim().finally(() => {
      if (!stopping.signal.aborted) timer = setTimeout(run, intervalMs);
    });
  }

  return {
    start: run,
    async stop() {
      stopping.abort();
      clearTimeout(timer);
      await running;
    },
  };
}
