import { setTimeout as delay } from 'node:timers/promises';

export interface EventuallyOptions {
  /** In milliseconds; 5,000 unless set. */
  timeoutMs?: number;
  /** In milliseconds; 20 unless set. */
  intervalMs?: number;
}

/**
 * Retries until a function neither throws nor returns `false`.
 *
 * @throws what the last attempt threw, when the time is up
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
