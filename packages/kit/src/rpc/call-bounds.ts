import { Code, ConnectError } from '@connectrpc/connect';
import { DEADLINE_MS_MAX } from './route.ts';

/** What may end a call before its handler does. */
export interface CallBounds {
  readonly signal: AbortSignal | undefined;
  /** Time until the deadline, in milliseconds. */
  readonly timeoutMs: number;
}

/** What is told that a call is over: an `AbortController`, or something cheaper. */
export interface Abortable {
  abort(reason?: unknown): void;
}

/** The error of a call whose caller gave up. */
export function canceled(): ConnectError {
  return new ConnectError('the call was canceled', Code.Canceled);
}

/** The error of a call that took too long. */
export function deadlineExceeded(): ConnectError {
  return new ConnectError('the deadline has passed', Code.DeadlineExceeded);
}

/** The error of a call that an aborted signal ended. A signal that a deadline aborted hands that deadline on. */
export function endedBy(signal: AbortSignal): ConnectError {
  const { reason } = signal;
  return reason instanceof ConnectError && reason.code === Code.DeadlineExceeded ? deadlineExceeded() : canceled();
}

/**
 * The deadline of a call in whole milliseconds: as a client gives it, where nothing, zero and less mean none, and never longer than
 * a server allows.
 */
export function clientTimeoutMs(timeoutMs: number | undefined): number {
  return timeoutMs === undefined || !(timeoutMs > 0) ? DEADLINE_MS_MAX : Math.min(Math.ceil(timeoutMs), DEADLINE_MS_MAX);
}

/** Milliseconds until a time of `performance.now()`. At least 1, since a client takes 0 for no deadline at all. */
export function timeLeftMs(deadlineAt: number): number {
  return Math.max(1, Math.ceil(deadlineAt - performance.now()));
}

/**
 * Runs something until it ends, its deadline passes or its caller gives up, whichever is first. In each case `call` is aborted
 * after, so that what still runs for it can stop.
 */
export function withinBounds<T>(bounds: CallBounds, call: Abortable, run: () => Promise<T>): Promise<T> {
  const { signal, timeoutMs } = bounds;
  if (signal?.aborted) return Promise.reject(endedBy(signal));
  return new Promise<T>((resolve, reject) => {
    const release = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    };
    const fail = (err: unknown) => {
      release();
      reject(err);
      call.abort(err);
    };
    const onAbort = () => fail(endedBy(signal as AbortSignal));
    const timer = setTimeout(() => fail(deadlineExceeded()), timeoutMs);
    signal?.addEventListener('abort', onAbort, { once: true });
    run().then((value) => {
      release();
      resolve(value);
      call.abort();
    }, fail);
  });
}
