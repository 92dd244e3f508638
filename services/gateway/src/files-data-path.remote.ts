import type { IncomingMessage, RequestOptions, ServerResponse } from 'node:http';
import { ACTOR_HEADER } from '@latchkey/audit/actor';
import { CallQueue } from '@latchkey/kit/concurrency/call-queue';
import { releaseBytes, writeChunk } from '@latchkey/kit/http/write-chunk';
import { createBodyClient, unreachable } from '@latchkey/kit/rpc/client/body-client';
import { bearer } from '@latchkey/kit/rpc/credentials';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import { REQUEST_ID_HEADER, TRACEPARENT_HEADER } from '@latchkey/kit/rpc/route';
import { activeTracer } from '@latchkey/kit/telemetry/tracing';
import { createAgent, request } from '@latchkey/kit/tls/client-tls';
import type { ServiceTls } from '@latchkey/kit/tls/service-tls';
import { UploadAvatarResponseSchema } from '@latchkey/proto/latchkey/files/v1/avatar_pb';
import { UploadFileResponseSchema } from '@latchkey/proto/latchkey/files/v1/file_pb';
import { AppendUploadResponseSchema } from '@latchkey/proto/latchkey/files/v1/upload_pb';
import { errors } from './errors.ts';
import type { FilesDataPath, RequestBody } from './files-data-path.ts';
import { announcedByteSize } from './http/request-body.ts';

const REQUEST_HEADERS = ['range', 'if-range', 'if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since'] as const;

/** Response headers of one connection (RFC 9110, 7.6.1), or that each server sets itself. */
const OWN_HEADERS = new Set(['connection', 'keep-alive', 'transfer-encoding', 'trailer', 'upgrade', 'date']);

/** The only forwarded targets. As a URL, a target could name another host. */
const DOWNLOAD_TARGET = /^\/downloads\/([\w-]{1,200})(?:\?|$)/;

/** Limits of downloads that wait for their head: a burst of one network delays no other. */
const STARTS = { concurrency: 32, concurrencyPerKey: 2, size: 2_000, sizePerKey: 500, waitMs: 5_000 };

export function createRemoteFilesDataPath(options: {
  readonly baseUrl: string;
  readonly credential: string;
  readonly tls?: ServiceTls | undefined;
  readonly uploadTimeoutMs: number;
}): FilesDataPath {
  const { baseUrl, credential, tls, uploadTimeoutMs: timeoutMs } = options;
  const bodies = createBodyClient(baseUrl, credential, tls);
  const { origin } = new URL(baseUrl);
  const agent = createAgent(tls);
  const starts = new CallQueue(STARTS);
  return {
    upload(ticket, body, requestId) {
      const headers = { 'x-upload-ticket': ticket };
      const call = { path: '/uploads', headers, body, byteSize: announcedByteSize(body), requestId, timeoutMs };
      return bodies.send(call, UploadFileResponseSchema);
    },
    appendUpload({ uploadId, byteOffset, ...body }) {
      const headers = { ...toHeaders(body), 'x-upload-id': uploadId, 'x-upload-offset': String(byteOffset) };
      return bodies.send({ path: '/upload-chunks', ...body, headers, timeoutMs }, AppendUploadResponseSchema);
    },
    uploadAvatar({ clientNetwork, ...body }) {
      const headers = { ...toHeaders(body), 'x-client-network': clientNetwork };
      return bodies.send({ path: '/avatars', ...body, headers, timeoutMs }, UploadAvatarResponseSchema);
    },
    async download(req, res, requestId, clientNetwork) {
      const [, token] = DOWNLOAD_TARGET.exec(req.url ?? '') ?? [];
      if (token === undefined) throw errors.route_not_found();
      const traceparent = activeTracer()?.traceparent();
      const headers = {
        authorization: bearer(credential),
        'x-client-network': clientNetwork,
        [REQUEST_ID_HEADER]: requestId,
        ...(traceparent !== undefined && { [TRACEPARENT_HEADER]: traceparent }),
        ...Object.fromEntries(REQUEST_HEADERS.flatMap((name) => (name in req.headers ? [[name, req.headers[name]]] : []))),
      };
      starts.check(clientNetwork);
      const url = `${origin}/downloads/${token}`;
      const options = { agent, method: req.method, headers, highWaterMark: 0 };
      const response = await starts.run(clientNetwork, () => requestHead(url, options, res));
      await forward(response, res);
    },
  };
}

const toHeaders = ({ accountId, actor, checksum, idempotency }: RequestBody) => ({
  'x-account-id': accountId,
  [ACTOR_HEADER]: actor,
  ...(checksum && { 'x-checksum': checksum.toString('hex') }),
  ...idempotency,
});

/** Resolves with the response once its head has arrived. Ends with the client. */
async function requestHead(url: string, options: RequestOptions, res: ServerResponse): Promise<IncomingMessage> {
  const upstream = request(url, options);
  // Node's parser copies the body out of each chunk read. V8 would collect them after 64 MiB.
  upstream.once('socket', (socket) => socket.on('data', releaseBytes));
  res.once('close', () => upstream.destroy());
  if (res.closed) upstream.destroy();
  const timer = setTimeout(() => upstream.destroy(new Error('no response')), DEADLINES_MS.gateway);
  try {
    return await new Promise((resolve, reject) => {
      upstream.once('response', resolve).on('error', (err) => reject(unreachable(err)));
      upstream.end();
    });
  } finally {
    clearTimeout(timer);
  }
}

/** Sends a response as fast as the client reads. A broken one is shorter than declared. */
async function forward(response: IncomingMessage, res: ServerResponse): Promise<void> {
  const headers = Object.entries(response.headers).filter(([name]) => !OWN_HEADERS.has(name));
  res.writeHead(response.statusCode ?? 502, Object.fromEntries(headers));
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) await writeChunk(res, chunk);
    res.end();
  } catch {
    res.destroy();
  }
}
