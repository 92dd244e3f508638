import type { IncomingHttpHeaders } from 'node:http';
import { Code, ConnectError } from '@connectrpc/connect';
import type { Dispatcher, Pool } from 'undici';
import { canceled, deadlineExceeded } from './call-bounds.ts';
import { MESSAGE_BYTES_MAX } from './route.ts';

/** One POST to send. */
export interface LeanRequest {
  readonly path: string;
  /** Names and values in turn. */
  readonly headers: string[];
  readonly body: Uint8Array;
  /** Time until the deadline, in milliseconds. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** A whole answer. */
export interface LeanAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Uint8Array;
}

/**
 * Sends one request and reads its answer whole. When the deadline passes, the caller gives up or the answer grows too large, the
 * connection is closed.
 *
 * @throws ConnectError: `unavailable` where the service could not be reached or fell silent
 */
export function sendLean(pool: Pool, request: LeanRequest): Promise<LeanAnswer> {
  return new Promise((resolve, reject) => {
    const exchange = new Exchange(request, resolve, reject);
    pool.dispatch({ path: request.path, method: 'POST', headers: request.headers, body: request.body }, exchange);
  });
}

class Exchange implements Dispatcher.DispatchHandler {
  readonly #resolve: (answer: LeanAnswer) => void;
  readonly #reject: (err: ConnectError) => void;
  readonly #signal: AbortSignal | undefined;
  readonly #timer: NodeJS.Timeout;
  readonly #onAbort = () => this.#fail(canceled());
  readonly #chunks: Buffer[] = [];
  #controller: Dispatcher.DispatchController | undefined;
  #failure: ConnectError | undefined;
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  #size = 0;

  constructor(request: LeanRequest, resolve: (answer: LeanAnswer) => void, reject: (err: ConnectError) => void) {
    this.#resolve = resolve;
    this.#reject = reject;
    this.#signal = request.signal;
    this.#timer = setTimeout(() => this.#fail(deadlineExceeded()), request.timeoutMs);
    this.#signal?.addEventListener('abort', this.#onAbort, { once: true });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#failure) controller.abort(this.#failure);
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#size += chunk.byteLength;
    if (this.#size > MESSAGE_BYTES_MAX) {
      this.#fail(new ConnectError(`the answer is larger than ${MESSAGE_BYTES_MAX} bytes`, Code.ResourceExhausted));
    } else this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    this.#release();
    const body = this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks);
    this.#resolve({ status: this.#status, headers: this.#headers, body });
  }

  onResponseError(_controller: Dispatcher.DispatchController, err: Error): void {
    this.#release();
    this.#reject(this.#failure ?? new ConnectError(err.message, Code.Unavailable, undefined, undefined, err));
  }

  /** Ends the exchange from our side. A request that still waits for a connection is dropped when its turn comes. */
  #fail(failure: ConnectError): void {
    this.#failure = failure;
    this.#release();
    this.#reject(failure);
    this.#controller?.abort(failure);
  }

  #release(): void {
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener('abort', this.#onAbort);
  }
}
