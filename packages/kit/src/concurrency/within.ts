import { setTimeout as delay } from 'node:timers/promises';

/** Resolves when a promise settles, however it ends, or after this many milliseconds. */
export async function within(timeoutMs: number, promise: Promise<unknown>): Promise<void> {
  const timer = new AbortController();
  const waited = delay(timeoutMs, undefined, { signal: timer.signal }).catch(() => undefined);
  await Promise.race([promise.catch(() => undefined), waited]);
  timer.abort();
}

/** Settles as a promise does, or rejects after this many milliseconds. */
export async function orRejectAfter<T>(timeoutMs: number, promise: Promise<T>, toError: () => Error): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(toError()), timeoutMs);
  return Promise.race([promise, late.promise]).finally(() => clearTimeout(timer));
}
