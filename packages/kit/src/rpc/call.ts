import type { IncomingMessage } from 'node:http';
import type { DescMessage, DescMethodUnary, MessageShape } from '@bufbuild/protobuf';
import { Code, ConnectError, type UnaryResponse } from '@connectrpc/connect';
import { DEADLINES_MS } from './deadlines.ts';
import { MESSAGE_BYTES_MAX } from './route.ts';

/** Request headers as a plain record, or anything else that `Headers` accepts. */
export type HeaderSource = ConstructorParameters<typeof Headers>[0];

export function canceled(): ConnectError {
  return new ConnectError('the call was canceled', Code.Canceled);
}

function deadlineExceeded(): ConnectError {
  return new ConnectError('the deadline has passed', Code.DeadlineExceeded);
}

export function tooLarge(what: 'request' | 'response'): ConnectError {
  return new ConnectError(`the ${what} is larger than ${MESSAGE_BYTES_MAX} bytes`, Code.ResourceExhausted);
}

/**
 * Reads the body of a request or a response, and stores none of it beyond the limit.
 *
 * @param toCutOff makes the error of a body that ends too early
 */
export function readWhole(
  message: IncomingMessage,
  what: 'request' | 'response',
  toCutOff: (err: Error) => ConnectError,
): Promise<Buffer> {
  if (Number(message.headers['content-length'] ?? 0) > MESSAGE_BYTES_MAX) return Promise.reject(tooLarge(what));
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    message.on('data', (chunk: Buffer) => {
      size += chunk.byteLength;
      if (size <= MESSAGE_BYTES_MAX) chunks.push(chunk);
      else {
        chunks.length = 0;
        reject(tooLarge(what));
      }
    });
    message.on('end', () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
    message.on('error', (err) => reject(toCutOff(err)));
  });
}

/** The error of a call that an aborted signal ended: a deadline, or else a cancellation. */
export function endedBy({ reason }: AbortSignal): ConnectError {
  return reason instanceof ConnectError && reason.code === Code.DeadlineExceeded ? deadlineExceeded() : canceled();
}

/** A client's deadline in milliseconds, limited to the maximum, which is also the default. */
export function clientTimeoutMs(timeoutMs: number | undefined): number {
  return timeoutMs === undefined || !(timeoutMs > 0)
    ? DEADLINES_MS.longest
    : Math.min(Math.ceil(timeoutMs), DEADLINES_MS.longest);
}

/** Milliseconds until a time of `performance.now()`; at least 1, since 0 means no deadline. */
export function timeLeftMs(deadlineAt: number): number {
  return Math.max(1, Math.ceil(deadlineAt - performance.now()));
}

/** A client's response. Our services send no trailers. */
export function toResponse<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  message: MessageShape<O>,
  header: Headers = NO_HEADERS,
): UnaryResponse<I, O> {
  return { stream: false, service: method.parent, method, message, header, trailer: NO_HEADERS };
}

const NO_HEADERS = new Headers();

/**
 * Runs a call until it ends, its deadline passes or its caller cancels it, whichever is first. Then
 * aborts `call`, so that remaining work for it stops: with a reason unless the call succeeded.
 *
 * @param call an `AbortController`, or something cheaper
 */
export function runCall<T>(
  { signal, timeoutMs }: { readonly signal: AbortSignal | undefined; readonly timeoutMs: number },
  call: { abort(reason?: unknown): void },
  run: () => Promise<T>,
): Promise<T> {
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
