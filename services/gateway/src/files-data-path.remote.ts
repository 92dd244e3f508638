import type { Agent, IncomingHttpHeaders, IncomingMessage, RequestOptions, ServerResponse } from 'node:http';
import { ACTOR_HEADER } from '@latchkey/audit/actor';
import { releaseBytes, writeChunk } from '@latchkey/kit/http/write-chunk';
import { CallQueue } from '@latchkey/kit/process/call-queue';
import { boundConnect, createBodyClient, unreachable } from '@latchkey/kit/rpc/client/body-client';
import { bearer } from '@latchkey/kit/rpc/credentials';
import { REQUEST_ID_HEADER, TRACEPARENT_HEADER } from '@latchkey/kit/rpc/route';
import { activeTracer } from '@latchkey/kit/telemetry/tracing';
import { createAgent, request } from '@latchkey/kit/tls/client-tls';
import type { ServiceTls } from '@latchkey/kit/tls/service-tls';
import { UploadAvatarResponseSchema } from '@latchkey/proto/latchkey/files/v1/avatar_pb';
import { UploadFileResponseSchema } from '@latchkey/proto/latchkey/files/v1/file_pb';
import { errors } from './errors.ts';
import type { FilesDataPath } from './files-data-path.ts';
import { announcedByteSize } from './http/bytes-body.ts';

/** Headers of a download that go on to the files service. */
const REQUEST_HEADERS = ['range', 'if-range', 'if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since'] as const;

/** Headers of an answer that belong to one connection (RFC 9110, 7.6.1), or that each server sets by itself. */
const OWN_HEADERS = new Set(['connection', 'keep-alive', 'transfer-encoding', 'trailer', 'upgrade', 'date']);

/** The only requests that go on: a token, and a query that means nothing. */
const DOWNLOAD_TARGET = /^\/downloads\/([\w-]{1,200})(?:\?|$)/;

/**
 * Downloads whose response head is awaited. Otherwise a burst from one network would hold the event
 * loops of both services until all its downloads have started.
 */
const STARTS = { underWay: 32, underWayOfKey: 2, size: 2_000, sizeOfKey: 500, waitMs: 5_000 };

/** Longest wait for the head of a response, in milliseconds. A hung service holds no start longer. */
const HEAD_TIMEOUT_MS = 4_500;

/** How to reach the files service. */
export interface RemoteFilesOptions {
  /** `http://host:port` of its HTTP/1.1 port, or `https:` with TLS. */
  readonly baseUrl: string;
  readonly credential: string;
  /** What connections are secured with. None unless set. */
  readonly tls?: ServiceTls | undefined;
  /** Longest time that an upload may take, in milliseconds. */
  readonly uploadTimeoutMs: number;
}

/** The data path over HTTP to the files service in a process of its own. */
export function createRemoteFilesDataPath(options: RemoteFilesOptions): FilesDataPath & { close(): Promise<void> } {
  const { baseUrl, credential, tls, uploadTimeoutMs } = options;
  const bodies = createBodyClient(baseUrl, credential, tls);
  const { origin } = new URL(baseUrl);
  const agent = createAgent(tls);
  const starts = new CallQueue(STARTS);
  return {
    upload(ticket, body, requestId) {
      const byteSize = announcedByteSize(body);
      const headers = { 'x-upload-ticket': ticket };
      return bodies.send(
        { path: '/uploads', headers, body, byteSize, requestId, timeoutMs: uploadTimeoutMs },
        UploadFileResponseSchema,
      );
    },
    uploadAvatar({ accountId, clientNetwork, body, byteSize, requestId, actor }) {
      const headers = { 'x-account-id': accountId, 'x-client-network': clientNetwork, [ACTOR_HEADER]: actor };
      return bodies.send(
        { path: '/avatars', headers, body, byteSize, requestId, timeoutMs: uploadTimeoutMs },
        UploadAvatarResponseSchema,
      );
    },
    async download(req, res, requestId, clientNetwork) {
      // What a client calls its target is never read as a URL: it could name another host, or another path.
      const [, token] = DOWNLOAD_TARGET.exec(req.url ?? '') ?? [];
      if (token === undefined) throw errors.route_not_found();
      // The files service believes the network from a service of the deployment only.
      const own = { authorization: bearer(credential), 'x-client-network': clientNetwork };
      const url = `${origin}/downloads/${token}`;
      starts.check(clientNetwork);
      const response = await starts.run(clientNetwork, () => begin(url, agent, { req, res, requestId, own }));
      await passOn(response, res);
    },
    close: () => bodies.close(),
  };
}

interface Download {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly requestId: string;
  /** Headers that tell the files service who asks. */
  readonly own: Readonly<Record<string, string>>;
}

/** Resolves with the response of the files service once its head is there. Ends with the client. */
async function begin(url: string, agent: Agent, { req, res, requestId, own }: Download): Promise<IncomingMessage> {
  const headers: Record<string, string> = { ...own, [REQUEST_ID_HEADER]: requestId };
  const traceparent = activeTracer()?.traceparent();
  if (traceparent !== undefined) headers[TRACEPARENT_HEADER] = traceparent;
  for (const name of REQUEST_HEADERS) {
    const value = req.headers[name];
    if (typeof value === 'string') headers[name] = value;
  }
  const upstream = request(url, { agent, method: req.method ?? 'GET', headers, highWaterMark: 0 } as RequestOptions);
  boundConnect(upstream);
  // Node's parser copies the body out of each read. V8 would collect the reads after 64 MiB.
  upstream.once('socket', (socket) => socket.on('data', releaseBytes));
  res.once('close', () => upstream.destroy());
  if (res.closed) upstream.destroy();
  const timer = setTimeout(() => upstream.destroy(new Error('no response')), HEAD_TIMEOUT_MS);
  try {
    return await new Promise((resolve, reject) => {
      upstream.once('response', resolve).on('error', (err) => reject(unreachable(err)));
      upstream.end();
    });
  } finally {
    clearTimeout(timer);
  }
}

/** Sends a response as fast as the client reads. Cut off, it is shorter than announced. */
async function passOn(response: IncomingMessage, res: ServerResponse): Promise<void> {
  res.writeHead(response.statusCode ?? 502, endToEnd(response.headers));
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) await writeChunk(res, chunk);
    res.end();
  } catch {
    res.destroy();
  }
}

function endToEnd(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !OWN_HEADERS.has(name)));
}
