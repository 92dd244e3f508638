import { type ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { TLSSocket } from 'node:tls';
import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { releaseBytes } from '../../http/write-chunk.ts';
import { inSpan } from '../../telemetry/tracing.ts';
import { createAgent, request } from '../../tls/client-tls.ts';
import type { ServiceTls } from '../../tls/service-tls.ts';
import { type Abortable, runCall, tooLarge } from '../call.ts';
import { bearer } from '../credentials.ts';
import { MESSAGE_BYTES_MAX, REQUEST_ID_HEADER, TRACEPARENT_HEADER } from '../route.ts';
import { CallCounter } from '../server/call-counter.ts';
import { readMessage, type WholeResponse } from './response.ts';

/** Longest wait for a connection, in milliseconds. */
const CONNECT_TIMEOUT_MS = 2_000;

/** A call whose request is a plain body. */
export interface BodyCall {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Read as fast as the service takes it, and never destroyed, even if it is not read to its end. */
  readonly body: Readable;
  /** Size of the body in bytes, if it is known. */
  readonly byteSize: number | undefined;
  readonly requestId: string;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs: number;
}

/** A client for `bodyRoute`s of a service. */
export interface BodyClient {
  /**
   * Sends a body with `PUT` and waits for the response, which may come before all is sent. Nothing is retried.
   *
   * @throws ConnectError what the service answered; `unavailable` if it can't be reached or goes away;
   *   `canceled` if the body is cut off, which the service sees too
   */
  send<O extends DescMessage>(call: BodyCall, output: O): Promise<MessageShape<O>>;
  /** Resolves once the calls under way have ended. */
  close(): Promise<void>;
}

/** @param baseUrl origin of the service's HTTP/1.1 port, `https:` with TLS */
export function createBodyClient(baseUrl: string, credential: string, tls?: ServiceTls): BodyClient {
  // A kept connection may be closed just before its next use, and a body can't be sent again.
  const agent = createAgent(tls);
  const calls = new CallCounter();
  return {
    send: (call, output) =>
      inSpan({ name: `PUT ${call.path}`, kind: 'client', attributes: { 'http.request.method': 'PUT' } }, async (span) => {
        const headers = {
          ...call.headers,
          authorization: bearer(credential),
          [REQUEST_ID_HEADER]: call.requestId,
          ...(span && { [TRACEPARENT_HEADER]: span.traceparent }),
          ...(call.byteSize === undefined ? { 'transfer-encoding': 'chunked' } : { 'content-length': call.byteSize }),
        };
        const upload = new Upload(call.body, call.byteSize);
        calls.enter();
        try {
          const send = () => upload.send(() => request(new URL(call.path, baseUrl), { agent, method: 'PUT', headers }));
          return readMessage(output, await runCall({ signal: call.signal, timeoutMs: call.timeoutMs }, upload, send));
        } finally {
          calls.leave();
        }
      }),
    close: () => calls.idle(),
  };
}

/** Sends one body. Unless all of it came, the connection is cut, so that the service can't take a part for the whole. */
class Upload implements Abortable {
  readonly #body: Readable;
  readonly #byteSize: number | undefined;
  #sentBytes = 0;
  #isSent = false;
  #req: ClientRequest | undefined;
  #release = () => undefined as unknown;

  constructor(body: Readable, byteSize: number | undefined) {
    this.#body = body;
    this.#byteSize = byteSize;
  }

  send(open: () => ClientRequest): Promise<WholeResponse> {
    if (this.#body.destroyed || this.#body.readableEnded) return Promise.reject(cutOff());
    return new Promise((resolve, reject) => {
      const req = open();
      this.#req = req;
      boundConnect(req);
      // The service may reject it, and its clock starts, before the first byte is there.
      req.flushHeaders();
      req.on('error', (err) => reject(unreachable(err)));
      req.on('response', (res) => resolve(this.#readResponse(res)));
      this.#pump(req, reject);
    });
  }

  abort(): void {
    this.#release();
    this.#req?.destroy();
  }

  async #readResponse(res: IncomingMessage): Promise<WholeResponse> {
    const isWhole = this.#isSent;
    // A service that answers early wants no more.
    if (!isWhole) this.#release();
    const response = await readWhole(res);
    if (response.status === 200 && !isWhole) throw new ConnectError('the body was answered before it was sent', Code.Internal);
    return response;
  }

  #pump(req: ClientRequest, reject: (err: unknown) => void): void {
    const body = this.#body;
    const cut = () => {
      this.#release();
      reject(cutOff());
      req.destroy();
    };
    // Chunks of other streams may share memory.
    const isRequest = body instanceof IncomingMessage;
    const onData = (chunk: Uint8Array) => {
      this.#sentBytes += chunk.byteLength;
      if (this.#byteSize !== undefined && this.#sentBytes > this.#byteSize) cut();
      else if (!req.write(chunk, () => isRequest && releaseBytes(chunk))) body.pause();
    };
    const onEnd = () => {
      // A request that was cut off may end like any other, but is not complete.
      const { complete = true } = body as Partial<IncomingMessage>;
      if (!complete || (this.#byteSize !== undefined && this.#sentBytes !== this.#byteSize)) return cut();
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
}

function cutOff(): ConnectError {
  return new ConnectError('the body was cut off', Code.Canceled);
}

/** The error of a request that could not be sent, or got no whole response. */
export function unreachable(err: Error): ConnectError {
  return new ConnectError(err.message, Code.Unavailable, undefined, undefined, err);
}

/** Fails a request that gets no connection in time. Node's own time-outs also count what comes after. */
export function boundConnect(req: ClientRequest): void {
  req.once('socket', (socket: Socket) => {
    if (!socket.connecting) return;
    const timer = setTimeout(() => req.destroy(new Error('no connection in time')), CONNECT_TIMEOUT_MS);
    const clear = () => clearTimeout(timer);
    socket.once(socket instanceof TLSSocket ? 'secureConnect' : 'connect', clear).once('close', clear);
  });
}

async function readWhole(res: IncomingMessage): Promise<WholeResponse> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of res as AsyncIterable<Buffer>) {
      size += chunk.byteLength;
      if (size > MESSAGE_BYTES_MAX) break;
      chunks.push(chunk);
    }
  } catch (err) {
    throw unreachable(err as Error);
  }
  if (size > MESSAGE_BYTES_MAX) throw tooLarge('response');
  if (!res.complete) throw unreachable(new Error('the response was cut off'));
  return { status: res.statusCode ?? 0, headers: res.headers, body: Buffer.concat(chunks) };
}
