import type { IncomingHttpHeaders } from 'node:http';
import { Code, ConnectError } from '@connectrpc/connect';
import type { Dispatcher, Pool } from 'undici';
import { tooLarge } from './lean-request.ts';
import { MESSAGE_BYTES_MAX } from './route.ts';

/** One POST to send. */
export interface LeanRequest {
  readonly path: string;
  /** Names and values in turn. */
  readonly headers: string[];
  readonly body: Uint8Array;
}

/** A whole answer. */
export interface LeanAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Uint8Array;
}

/**
 * One request on its way over a pool, and its answer, read whole. It ends when it is aborted, at the cost of its connection, and has no
 * deadline of its own.
 */
export class LeanExchange implements Dispatcher.DispatchHandler {
  readonly #resolve: (answer: LeanAnswer) => void;
  readonly #reject: (err: unknown) => void;
  readonly #chunks: Buffer[] = [];
  #controller: Dispatcher.DispatchController | undefined;
  #failure: Error | undefined;
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  #size = 0;

  constructor(resolve: (answer: LeanAnswer) => void, reject: (err: unknown) => void) {
    this.#resolve = resolve;
    this.#reject = reject;
  }

  /** Sends a request; `unavailable` is how the exchange fails where the service could not be reached or went away. */
  send(pool: Pool, { path, headers, body }: LeanRequest): void {
    pool.dispatch({ path, method: 'POST', headers, body }, this);
  }

  /** Whether it was sent, in part at least; what found no connection was not. */
  get isSent(): boolean {
    return this.#controller !== undefined;
  }

  /** Whether the peer was heard at all. */
  get isAnswered(): boolean {
    return this.#status !== 0;
  }

  /** Ends the exchange from our side. */
  abort(reason: Error): void {
    if (this.#failure) return;
    this.#failure = reason;
    this.#reject(reason);
    this.#controller?.abort(reason);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // A throw drops what was canceled while it waited for a connection; an abort of the controller would close that connection.
    if (this.#failure) throw this.#failure;
    this.#controller = controller;
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#size += chunk.byteLength;
    if (this.#size > MESSAGE_BYTES_MAX) this.abort(tooLarge('answer'));
    else this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    const body = this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks);
    this.#resolve({ status: this.#status, headers: this.#headers, body });
  }

  onResponseError(_controller: Dispatcher.DispatchController, err: Error): void {
    const code = (err as NodeJS.ErrnoException).code === 'UND_ERR_INVALID_ARG' ? Code.Internal : Code.Unavailable;
    this.#reject(this.#failure ?? new ConnectError(err.message, code, undefined, undefined, err));
  }
}
