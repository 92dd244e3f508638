import { ConnectionError, LatchkeyError } from '../errors.ts';

/** Longer waits are left to the caller, who gets the error with `retryAfterSeconds`. */
export const RETRY_AFTER_SECONDS_MAX = 30;
const BACKOFF_MS = 500;
const BACKOFF_MS_MAX = 8_000;

export const backoffMs = (attempt: number) => Math.random() * Math.min(BACKOFF_MS_MAX, BACKOFF_MS * 2 ** attempt);

/**
 * Milliseconds until a failed call is repeated, with jitter, so that clients do not return
 * together; undefined if it is not.
 *
 * @param idempotent whether a second request changes nothing more than the first one
 */
export function retryDelayMs(err: unknown, attempt: number, idempotent: boolean): number | undefined {
  if (err instanceof ConnectionError) return idempotent || err.unsent ? backoffMs(attempt) : undefined;
  if (!(err instanceof LatchkeyError)) return undefined;
  // A limit rejects before any effect; a dependency may fail after one.
  const isSafe = err.status === 429 || err.code === 'idempotency_in_progress' || (err.status === 503 && idempotent);
  const { retryAfterSeconds = Number.POSITIVE_INFINITY } = err;
  return isSafe && retryAfterSeconds <= RETRY_AFTER_SECONDS_MAX ? retryAfterSeconds * 1_000 + Math.random() * 1_000 : undefined;
}

/** Waits, and rejects with the reason of the signal once it is aborted. */
export function sleep(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, delayMs);
    signal?.addEventListener('abort', abort, { once: true });
  });
}
