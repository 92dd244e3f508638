import { hash, randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { createErrors } from '@latchkey/kit/errors/read-proto-errors';
import { createLogger } from '@latchkey/kit/log/logger';
import { bodyRoute, type HttpRoute } from '@latchkey/kit/rpc/server/http-route';
import { startRpcServer } from '@latchkey/kit/rpc/server/server';
import {
  type BeginUploadRequestSchema,
  type FileError,
  FileErrorSchema,
  UploadFileResponseSchema,
} from '@latchkey/proto/latchkey/files/v1/file_pb';
import { openRawClient } from '@latchkey/testkit/network/raw-client';
import { createRemoteFilesDataPath } from '../files-data-path.remote.ts';
import type { FilesDataPath } from '../files-data-path.ts';
import { startTestGateway, toKey, unexpected } from './test-gateway.ts';

export const APPLICATION_ID = '01900000-0000-7000-8000-00000000000a';
export const FILE_ID = '01900000-0000-7000-8000-00000000000f';
const TICKET = 'a ticket';
const CREDENTIAL = 'c'.repeat(32);
const UPLOAD_TIMEOUT_MS = 195_000;

export const fileErrors = createErrors<typeof FileError>(FileErrorSchema);

/** Transport between gateway and files service: in one process, or over HTTP. */
export type DataPathKind = 'direct' | 'remote';

/** Requests of the fake files service, and its next response. */
const createFakeFiles = () => ({
  begun: [] as Array<MessageShape<typeof BeginUploadRequestSchema>>,
  /** Sizes of the complete bodies. */
  whole: [] as number[],
  /** Bodies that have begun, and that broke off. */
  received: 0,
  broken: 0,
  byteSizeMax: Number.POSITIVE_INFINITY,
  /** Error of beginUpload. */
  refusal: undefined as Error | undefined,
  /** The file of a repeated upload. */
  stored: undefined as MessageInitShape<typeof UploadFileResponseSchema> | undefined,
  beforeReading: async () => {},
});

function fakeUpload(fake: ReturnType<typeof createFakeFiles>): FilesDataPath['upload'] {
  return async (ticket, body: IncomingMessage) => {
    if (ticket !== TICKET) throw new Error('not the ticket that was issued');
    fake.received += 1;
    await fake.beforeReading();
    const chunks: Buffer[] = [];
    let byteSize = 0;
    try {
      for await (const chunk of body as AsyncIterable<Buffer>) {
        byteSize += chunk.byteLength;
        if (byteSize > fake.byteSizeMax) break;
        chunks.push(chunk);
      }
    } catch {
      fake.broken += 1;
      throw fileErrors.upload_interrupted();
    }
    if (byteSize > fake.byteSizeMax) throw fileErrors.file_too_large();
    if (!body.complete) throw new Error('a broken body ended properly');
    fake.whole.push(byteSize);
    return { id: randomUUID(), byteSize: BigInt(byteSize), checksum: hash('sha256', Buffer.concat(chunks), 'buffer') };
  };
}

async function startDataPath(kind: DataPathKind, dataPath: Pick<FilesDataPath, 'upload' | 'download'>) {
  if (kind === 'direct') return { dataPath, stop: async () => undefined };
  const uploads = bodyRoute({
    path: '/uploads',
    output: UploadFileResponseSchema,
    handle: (req, requestId) => dataPath.upload(String(req.headers['x-upload-ticket']), req, requestId),
  });
  const downloads = ['GET', 'HEAD'].map(
    (method): HttpRoute => ({
      method,
      path: '/downloads/',
      needsCredential: false,
      handle: (req, res, requestId, isService) =>
        dataPath.download(req, res, requestId, isService ? String(req.headers['x-client-network']) : 'not a service'),
    }),
  );
  const server = await startRpcServer({
    routes: [],
    httpRoutes: [uploads, ...downloads],
    logger: createLogger('files', 'silent'),
    credentials: [CREDENTIAL],
    checkReady: async () => undefined,
    host: '127.0.0.1',
    port: 0,
    grpcPort: 0,
  });
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= server.stop();
    return stopped;
  };
  const baseUrl = `http://127.0.0.1:${server.port}`;
  return {
    dataPath: createRemoteFilesDataPath({ baseUrl, credential: CREDENTIAL, uploadTimeoutMs: UPLOAD_TIMEOUT_MS }),
    stop,
  };
}

/** Starts a gateway before a fake files service. The caller stops it. */
export async function startUploadGateway(
  kind: DataPathKind,
  options: Pick<FilesDataPath, 'download'> = { download: unexpected },
) {
  const fake = createFakeFiles();
  const logged: Array<Record<string, unknown>> = [];
  const { dataPath, stop: stopDataPath } = await startDataPath(kind, { upload: fakeUpload(fake), ...options });
  const gateway = await startTestGateway({
    logger: createLogger('gateway', 'info', { write: (line) => void logged.push(JSON.parse(line)) }),
    filesData: dataPath,
    authentication: {
      authenticate: async ({ credential: { value } }) =>
        toKey(value === 'reader' ? ['files:read'] : ['files:upload'], { allApplications: value !== 'restricted' }),
    },
    apiKeys: { recordApiKeyRequests: async () => ({}) },
    applications: { findOwnedApplications: async ({ applicationIds }) => ({ applicationIds: [...applicationIds] }) },
    files: {
      beginUpload: async (request) => {
        fake.begun.push(request);
        if (fake.refusal) throw fake.refusal;
        return fake.stored ? { stored: fake.stored } : { ticket: TICKET, fileId: FILE_ID };
      },
    },
  });
  const path = `/api/v1/panel/upload-file?applicationId=${APPLICATION_ID}&fileName=setup.exe`;
  return {
    ...gateway,
    fake,
    logged,
    url: gateway.baseUrl + path,
    /** Sends the head of an upload with further lines. */
    begin: async (lines: readonly string[]) => {
      const client = await openRawClient(gateway.port);
      const head = [`POST ${path} HTTP/1.1`, 'Host: x', 'Authorization: Bearer uploader', ...lines];
      client.socket.write(`${head.join('\r\n')}\r\n\r\n`);
      return client;
    },
    /** Sends a whole upload. */
    upload: (body: RequestInit['body'], headers: Record<string, string> = {}, url = gateway.baseUrl + path) =>
      fetch(url, {
        method: 'POST',
        body: body ?? null,
        duplex: 'half',
        headers: { authorization: 'Bearer uploader', 'content-type': 'application/octet-stream', ...headers },
      } as RequestInit),
    stopDataPath,
    stop: async () => {
      await gateway.service.stop();
      await stopDataPath();
    },
  };
}

export type UploadGateway = Awaited<ReturnType<typeof startUploadGateway>>;
