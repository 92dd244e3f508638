import { setTimeout as delay } from 'node:timers/promises';

/**
 * Polls until the result is truthy or the time is up.
 *
 * @param options.intervalMs pause between two tries
 * @returns the first truthy result, or `undefined` after `timeoutMs`
 * @throws what `poll` throws
 */
export async function waitUntil<T>(
  poll: () => T | Promise<T>,
  { timeoutMs, intervalMs = 20 }: { timeoutMs: number; intervalMs?: number },
): Promise<T | undefined> {
  for (const deadline = performance.now() + timeoutMs; ; await delay(intervalMs)) {
    const result = await poll();
    if (result) return result;
    if (performance.now() >= deadline) return undefined;
  }
}
