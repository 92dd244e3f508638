import { type ClientRequest, IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { toUnknownOutcome } from '../../errors/errors.ts';
import { releaseBytes } from '../../http/write-chunk.ts';
import { formatTraceparent, inSpan } from '../../telemetry/tracing.ts';
import { createAgent, request } from '../../tls/client-tls.ts';
import type { ServiceTls } from '../../tls/service-tls.ts';
import { readWhole, runCall } from '../call.ts';
import { bearer } from '../credentials.ts';
import { REQUEST_ID_HEADER, TRACEPARENT_HEADER } from '../route.ts';
import { readMessage, type WholeResponse } from './read-response.ts';

export interface BodyCall {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Read as fast as the service takes it, and never destroyed. */
  readonly body: Readable;
  readonly byteSize: number | undefined;
  readonly requestId: string;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs: number;
}

/**
 * A client for `bodyRoute`s of a service.
 *
 * @param baseUrl origin of the service's HTTP/1.1 port, `https:` with TLS
 */
export function createBodyClient(baseUrl: string, credential: string, tls?: ServiceTls) {
  // An idle connection may be closed just before its next use, and a body can't be sent again.
  const agent = createAgent(tls);
  const attributes = { 'http.request.method': 'PUT' };
  return {
    /**
     * Sends a body with `PUT`, once. The response may come before all is sent.
     *
     * @throws ConnectError of the service; `unavailable` if it is not reached or ends, but
     *   `outcome_unknown` after the whole body; `canceled` if the body is cut off, which the service
     *   sees too
     */
    send<O extends DescMessage>(call: BodyCall, output: O): Promise<MessageShape<O>> {
      const { path, body, byteSize, requestId, signal, timeoutMs } = call;
      return inSpan({ name: `PUT ${path}`, kind: 'client', attributes }, async (span) => {
        const headers = {
          ...call.headers,
          authorization: bearer(credential),
          [REQUEST_ID_HEADER]: requestId,
          ...(span && { [TRACEPARENT_HEADER]: formatTraceparent(span) }),
          ...(byteSize === undefined ? { 'transfer-encoding': 'chunked' } : { 'content-length': byteSize }),
        };
        const upload = createUpload(body, byteSize);
        const open = () => request(new URL(path, baseUrl), { agent, method: 'PUT', headers });
        const response = runCall({ signal, timeoutMs }, upload, () => upload.send(open)).catch((err: unknown) => {
          throw upload.isSent() ? toUnknownOutcome(err) : err;
        });
        return readMessage(output, await response);
      });
    },
  };
}

/** An upload of one body. Cuts the connection of an incomplete one, so that it is not accepted. */
function createUpload(body: Readable, byteSize: number | undefined) {
  let isSent = false;
  let req: ClientRequest | undefined;
  let stopReading = (): unknown => undefined;
  const abort = () => {
    stopReading();
    req?.destroy();
  };

  async function readResponse(res: IncomingMessage): Promise<WholeResponse> {
    const isWhole = isSent;
    // A service that answers early wants no more.
    if (!isWhole) stopReading();
    const body = await readWhole(res, 'response', unreachable);
    const { statusCode: status = 0, headers } = res;
    if (status === 200 && !isWhole) throw new ConnectError('the body was answered before it was sent', Code.Internal);
    return { status, headers, body };
  }

  function pump(to: ClientRequest, cut: () => void): void {
    let sentBytes = 0;
    // Chunks of other streams may share memory.
    const isRequest = body instanceof IncomingMessage;
    const onData = (chunk: Uint8Array) => {
      sentBytes += chunk.byteLength;
      if (byteSize !== undefined && sentBytes > byteSize) cut();
      else if (!to.write(chunk, () => isRequest && releaseBytes(chunk))) body.pause();
    };
    const onEnd = () => {
      // A request that was cut off may end like any other, but is not complete.
      const { complete = true } = body as Partial<IncomingMessage>;
      if (!complete || (byteSize !== undefined && sentBytes !== byteSize)) return cut();
      stopReading();
      isSent = true;
      to.end();
    };
    const onDrain = () => body.resume();
    body.on('data', onData).on('end', onEnd).on('error', cut).on('close', cut);
    to.on('drain', onDrain);
    stopReading = () => {
      body.off('data', onData).off('end', onEnd).off('error', cut).off('close', cut);
      to.off('drain', onDrain);
      body.pause();
    };
  }

  return {
    /** True if the service may have got the whole body. */
    isSent: () => isSent,
    abort,
    send(open: () => ClientRequest): Promise<WholeResponse> {
      if (body.destroyed || body.readableEnded) return Promise.reject(cutOff());
      return new Promise((resolve, reject) => {
        const opened = open();
        req = opened;
        // The service may reject it, and its deadline starts, before the first byte is there.
        opened.flushHeaders();
        opened.on('error', (err) => reject(unreachable(err)));
        opened.on('response', (res) => resolve(readResponse(res)));
        pump(opened, () => {
          reject(cutOff());
          abort();
        });
      });
    },
  };
}

function cutOff(): ConnectError {
  return new ConnectError('the body was cut off', Code.Canceled);
}

/** The error of a request that could not be sent, or got no whole response. */
export function unreachable(err: Error): ConnectError {
  return new ConnectError(err.message, Code.Unavailable, undefined, undefined, err);
}
