import { setTimeout as delay } from 'node:timers/promises';

export interface EventuallyOptions {
  /** How long to go on trying, in milliseconds; 5,000 by default. */
  timeoutMs?: number;
  /** Pause between two tries, in milliseconds; 20 by default. */
  intervalMs?: number;
}

/**
 * Tries until it neither throws nor answers `false`, for what becomes true a moment later. A test that waits this way
 * takes as long as the thing takes, and no fixed sleep.
 *
 * @returns what the try that succeeded returned.
 * @throws what the last try threw, when the time is up.
 */
export async function eventually<T>(attempt: () => T | Promise<T>, options: EventuallyOptions = {}): Promise<T> {
  const { timeoutMs = 5_000, intervalMs = 20 } = options;
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    try {
      const answer = await attempt();
      if (answer !== false) return answer;
      if (performance.now() >= deadline) throw new Error(`still false after ${timeoutMs} ms`);
    } catch (err) {
      if (performance.now() >= deadline) throw err;
    }
    await delay(intervalMs);
  }
}
