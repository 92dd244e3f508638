import { type Agent, type ClientRequest, IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { Code, ConnectError } from '@connectrpc/connect';
import { releaseBytes } from '../http/release-bytes.ts';
import { request } from '../tls/service-agent.ts';
import type { Abortable } from './call-bounds.ts';
import type { LeanAnswer } from './lean-exchange.ts';
import { boundConnect, readAnswer, unreachable } from './plain-answer.ts';

/**
 * One `PUT` on its way, and its answer, read whole. The body is proper to its end only if all of it came; otherwise the connection is cut, so that
 * the service can't take a part for the whole. It has no deadline of its own.
 */
export class BodyExchange implements Abortable {
  readonly #body: Readable;
  readonly #byteSize: number | undefined;
  #sentBytes = 0;
  #isSent = false;
  #req: ClientRequest | undefined;
  #release: () => void = () => undefined;

  constructor(body: Readable, byteSize: number | undefined) {
    this.#body = body;
    this.#byteSize = byteSize;
  }

  /** Sends the body. */
  send(url: URL, options: { readonly agent: Agent; readonly headers: Readonly<Record<string, string>> }): Promise<LeanAnswer> {
    if (this.#body.destroyed || this.#body.readableEnded) return Promise.reject(cutOff());
    const length = this.#byteSize === undefined ? { 'transfer-encoding': 'chunked' } : { 'content-length': this.#byteSize };
    return new Promise((resolve, reject) => {
      const req = request(url, { agent: options.agent, method: 'PUT', headers: { ...options.headers, ...length } });
      this.#req = req;
      boundConnect(req);
      // The service may refuse it, and counts the time, before the first byte is there.
      req.flushHeaders();
      req.on('error', (err) => reject(unreachable(err)));
      req.on('response', (res) => resolve(this.#readAnswer(res)));
      this.#pump(req, reject);
    });
  }

  /** Ends the exchange from our side; without a reason it has ended by itself. */
  abort(): void {
    this.#release();
    this.#req?.destroy();
  }

  async #readAnswer(res: IncomingMessage): Promise<LeanAnswer> {
    const isWhole = this.#isSent;
    // Whoever answers early wants no more.
    if (!isWhole) this.#release();
    const answer = await readAnswer(res);
    if (answer.status === 200 && !isWhole) throw new ConnectError('the body was answered before it was sent', Code.Internal);
    return answer;
  }

  #pump(req: ClientRequest, reject: (err: unknown) => void): void {
    const body = this.#body;
    const cut = () => {
      this.#release();
      reject(cutOff());
      req.destroy();
    };
    // What is read of other streams may be somebody's. A chunk is in use until it is written.
    const isRequest = body instanceof IncomingMessage;
    const write = (chunk: Uint8Array) => req.write(chunk, () => isRequest && releaseBytes(chunk));
    const onData = (chunk: Uint8Array) => {
      this.#sentBytes += chunk.byteLength;
      if (this.#byteSize !== undefined && this.#sentBytes > this.#byteSize) cut();
      else if (!write(chunk)) body.pause();
    };
    const onEnd = () => {
      if (!this.#isWhole()) return cut();
      this.#release();
      this.#isSent = true;
      req.end();
    };
    const onDrain = () => body.resume();
    body.on('data', onData).on('end', onEnd).on('error', cut).on('close', cut);
    req.on('drain', onDrain);
    this.#release = () => {
      body.off('data', onData).off('end', onEnd).off('error', cut).off('close', cut);
      req.off('drain', onDrain);
      body.pause();
    };
  }

  /** A request that was cut off may end like any other, and is not complete then. */
  #isWhole(): boolean {
    const { complete = true } = this.#body as Partial<IncomingMessage>;
    return complete && (this.#byteSize === undefined || this.#sentBytes === this.#byteSize);
  }
}

function cutOff(): ConnectError {
  return new ConnectError('the body was cut off', Code.Canceled);
}
