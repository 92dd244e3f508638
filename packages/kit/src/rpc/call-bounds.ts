import { Code, ConnectError } from '@connectrpc/connect';
import type { UnaryContext } from './unary-context.ts';

/** What may end a call before its handler does. */
export interface CallBounds {
  readonly signal: AbortSignal | undefined;
  /** Time until the deadline, in milliseconds. */
  readonly timeoutMs: number;
}

/** The error of a call whose caller gave up. */
export function canceled(): ConnectError {
  return new ConnectError('the call was canceled', Code.Canceled);
}

/** The error of a call that took too long. */
export function deadlineExceeded(): ConnectError {
  return new ConnectError('the deadline has passed', Code.DeadlineExceeded);
}

/**
 * Runs a handler until it ends, its deadline passes or its caller gives up, whichever is first; in each case the context's
 * signal is aborted after.
 */
export function withinBounds<T>(bounds: CallBounds, context: UnaryContext, run: () => Promise<T>): Promise<T> {
  const { signal, timeoutMs } = bounds;
  if (signal?.aborted) return Promise.reject(canceled());
  return new Promise<T>((resolve, reject) => {
    const end = (finish: () => void, reason?: unknown) => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
      context.abort(reason);
      finish();
    };
    const fail = (err: unknown) => end(() => reject(err), err);
    const onAbort = () => fail(canceled());
    const timer = setTimeout(() => fail(deadlineExceeded()), timeoutMs);
    signal?.addEventListener('abort', onAbort, { once: true });
    run().then((value) => end(() => resolve(value)), fail);
  });
}
