import { setTimeout as delay } from 'node:timers/promises';

/**
 * Retries until a function neither throws nor returns `false`.
 *
 * @throws what the last attempt threw, when the time is up
 */
export async function eventually<T>(attempt: () => T | Promise<T>, { timeoutMs = 5_000, intervalMs = 20 } = {}): Promise<T> {
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
