/** Resolves when a promise settles, however it ends, or after this many milliseconds. */
export async function within(timeoutMs: number, promise: Promise<unknown>): Promise<void> {
  await orRejectAfter(timeoutMs, promise, () => new Error('late')).catch(() => undefined);
}

/** Settles as a promise does, or rejects after this many milliseconds. */
export async function orRejectAfter<T>(timeoutMs: number, promise: Promise<T>, toError: () => Error): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(toError()), timeoutMs);
  return Promise.race([promise, late.promise]).finally(() => clearTimeout(timer));
}
