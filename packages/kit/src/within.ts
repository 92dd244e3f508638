import { setTimeout as delay } from 'node:timers/promises';

/** Resolves when something is settled, however it ends, or after so many milliseconds. */
export async function within(timeoutMs: number, settled: Promise<unknown>): Promise<void> {
  const timer = new AbortController();
  const waited = delay(timeoutMs, undefined, { signal: timer.signal }).catch(() => undefined);
  await Promise.race([settled.catch(() => undefined), waited]);
  timer.abort();
}
