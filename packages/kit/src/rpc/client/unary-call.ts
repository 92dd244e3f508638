import type { IncomingHttpHeaders } from 'node:http';
import { type DescMethodUnary, type Message, toBinary } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import type { Dispatcher, Pool } from 'undici';
import { type HeaderSource, timeLeftMs, tooLarge } from '../call.ts';
import { MESSAGE_BYTES_MAX, methodPath } from '../route.ts';
import type { WholeResponse } from './read-response.ts';

/** A stopping service may close several connections of the pool one after the other. */
const TRIES_MAX = 4;

/**
 * One unary call over a pool: one POST, and its response read whole. A request is sent again only
 * if no service has read it: it got no connection, or the server answered 408 as it closed the
 * connection. An abort closes the connection.
 */
export class UnaryCall implements Dispatcher.DispatchHandler {
  readonly #pool: Pool;
  readonly #authorization: string;
  readonly #deadlineAt: number;
  #response: PromiseWithResolvers<WholeResponse> | undefined;
  #path = '';
  #contentType = '';
  #body: Uint8Array | undefined;
  #header: HeaderSource;
  #controller: Dispatcher.DispatchController | undefined;
  #failure: Error | undefined;
  #tries = 0;
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  #chunks: Buffer[] = [];
  #size = 0;

  /** @param timeoutMs time until the deadline that the service receives, in milliseconds */
  constructor(pool: Pool, authorization: string, timeoutMs: number) {
    this.#pool = pool;
    this.#authorization = authorization;
    this.#deadlineAt = performance.now() + timeoutMs;
  }

  /** Rejects with a ConnectError: `unavailable` if the service can't be reached or goes away. */
  send(method: DescMethodUnary, body: Uint8Array, header: HeaderSource, contentType: string): Promise<WholeResponse> {
    if (body.byteLength > MESSAGE_BYTES_MAX) throw tooLarge('request');
    this.#path = methodPath(method);
    this.#header = header;
    this.#body = body;
    this.#contentType = contentType;
    this.#response = Promise.withResolvers();
    this.#dispatch();
    return this.#response.promise;
  }

  /** True if a service may have read the call. */
  get isSent(): boolean {
    return this.#controller !== undefined;
  }

  /** Does nothing without a reason: the call has ended. */
  abort(reason?: unknown): void {
    if (reason === undefined || this.#failure) return;
    this.#failure = reason as Error;
    this.#response?.reject(reason);
    this.#controller?.abort(this.#failure);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Drops a call canceled while it waited. An abort would close the connection.
    if (this.#failure) throw this.#failure;
    this.#controller = controller;
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#size += chunk.byteLength;
    if (this.#size > MESSAGE_BYTES_MAX) this.abort(tooLarge('response'));
    else this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    // From the server itself: the errors of a handler are JSON.
    if (this.#status === 408 && this.#headers['content-type'] === undefined) {
      this.#controller = undefined;
      if (!this.#sendAgain()) this.#response?.reject(new ConnectError('no service has read the call', Code.Unavailable));
      return;
    }
    const body = this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks);
    this.#response?.resolve({ status: this.#status, headers: this.#headers, body });
  }

  onResponseError(_controller: Dispatcher.DispatchController, err: Error): void {
    const isInvalid = (err as NodeJS.ErrnoException).code === 'UND_ERR_INVALID_ARG';
    if (!isInvalid && !this.#controller && this.#sendAgain()) return;
    const code = isInvalid ? Code.Internal : Code.Unavailable;
    this.#response?.reject(new ConnectError(err.message, code, undefined, undefined, err));
  }

  #sendAgain(): boolean {
    if (this.#failure || this.#tries >= TRIES_MAX) return false;
    this.#chunks = [];
    this.#size = 0;
    // By then the pool has noticed other closed connections.
    setImmediate(() => {
      if (!this.#failure) this.#dispatch();
    });
    return true;
  }

  #dispatch(): void {
    this.#tries += 1;
    const headers = ['content-type', this.#contentType, 'connect-protocol-version', '1'];
    headers.push('connect-timeout-ms', String(timeLeftMs(this.#deadlineAt)), 'authorization', this.#authorization);
    const given = this.#header ?? {};
    const pairs = Array.isArray(given) || given instanceof Headers ? new Headers(given).entries() : Object.entries(given);
    for (const [name, value] of pairs) headers.push(name, String(value));
    this.#pool.dispatch({ path: this.#path, method: 'POST', headers, body: this.#body as Uint8Array }, this);
  }
}

/** @throws ConnectError `internal` for a message that does not match its schema */
export function serialize(method: DescMethodUnary, message: Message): Uint8Array {
  try {
    return toBinary(method.input, message);
  } catch (err) {
    throw new ConnectError('the request is not a valid message', Code.Internal, undefined, undefined, err);
  }
}
