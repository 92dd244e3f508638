import { setTimeout as delay } from 'node:timers/promises';

export interface WaitOptions {
  /** How long to go on asking, in milliseconds. */
  timeoutMs: number;
  /** Pause between two tries, in milliseconds; 20 by default. */
  intervalMs?: number;
}

/**
 * Asks until the answer is truthy or the time is up.
 *
 * @returns the first truthy answer, or `undefined` after `timeoutMs`. What `ask` throws is passed on.
 */
export async function waitUntil<T>(
  ask: () => T | Promise<T>,
  { timeoutMs, intervalMs = 20 }: WaitOptions,
): Promise<T | undefined> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (performance.now() >= deadline) return undefined;
    await delay(intervalMs);
  }
}
