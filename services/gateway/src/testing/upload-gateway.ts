import { hash, randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { MessageShape } from '@bufbuild/protobuf';
import { defineErrors } from '@latchkey/kit/errors';
import { createLogger } from '@latchkey/kit/logger';
import { bodyRoute, type HttpRoute } from '@latchkey/kit/rpc/server/http-route';
import { startRpcServer } from '@latchkey/kit/rpc/server/server';
import { type BeginUploadRequestSchema, UploadFileResponseSchema } from '@latchkey/proto/latchkey/files/v1/file_pb';
import { PrincipalKind } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { openRawClient } from '@latchkey/testkit/raw-client';
import { testRedis } from '@latchkey/testkit/redis';
import { readGatewayConfig, uploadMsMax } from '../config.ts';
import { createRemoteFilesDataPath } from '../files-data-path.remote.ts';
import type { FilesDataPath, StoredFile } from '../files-data-path.ts';
import { startTestGateway } from './test-gateway.ts';

export const TICKET = 'a ticket';
export const APPLICATION_ID = '01900000-0000-7000-8000-00000000000a';
const FILE_ID = '01900000-0000-7000-8000-00000000000f';
const CREDENTIAL = 'c'.repeat(32);

/** Errors as the files service names them. */
export const fileErrors = defineErrors({
  file_name_taken: { kind: 'conflict', code: 'file_name_taken', message: 'The file name is taken' },
  file_empty: { kind: 'invalid', code: 'invalid_file', message: 'The file is empty' },
  file_too_large: { kind: 'too_large', message: 'The file is too large' },
  upload_under_way: { kind: 'rate_limited', message: 'Another upload of the account is under way' },
  upload_timeout: { kind: 'timeout', code: 'upload_timeout', message: 'The upload took too long' },
  upload_ticket_invalid: { kind: 'invalid', message: 'The upload ticket is unknown, used or expired' },
  upload_interrupted: { kind: 'unavailable', message: 'The upload was interrupted' },
});

/** How the gateway reaches the bytes' end: in its own process, or over HTTP. */
export type DataPathKind = 'direct' | 'remote';

/** What the fakes at the boundary were asked, and what they answer next. */
export interface FakeFiles {
  readonly begun: Array<MessageShape<typeof BeginUploadRequestSchema>>;
  /** Sizes of the bodies that came whole. */
  readonly whole: number[];
  /** How many bodies have begun, and how many broke off. */
  received: number;
  broken: number;
  /** Most bytes that a body may have. */
  byteSizeMax: number;
  refusal: Error | undefined;
  /** Runs before a body is read. */
  beforeReading: () => Promise<void>;
}

function fakeUpload(fake: FakeFiles): FilesDataPath['upload'] {
  return async (ticket, body: IncomingMessage): Promise<StoredFile> => {
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
    return { id: FILE_ID, byteSize: BigInt(byteSize), checksum: hash('sha256', Buffer.concat(chunks), 'buffer') };
  };
}

async function startDataPath(kind: DataPathKind, dataPath: FilesDataPath, env: Readonly<Record<string, string>>) {
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
      // As the files service does it.
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
  const uploadTimeoutMs = uploadMsMax(readGatewayConfig({ REDIS_URL: 'redis://x', ...env }));
  const baseUrl = `http://127.0.0.1:${server.port}`;
  return {
    dataPath: createRemoteFilesDataPath({ baseUrl, credential: CREDENTIAL, uploadTimeoutMs }),
    stop: () => {
      stopped ??= server.stop();
      return stopped;
    },
  };
}

async function unexpected(): Promise<never> {
  throw new Error('The test gave nothing to call');
}

/** Starts a gateway before a fake files service, of which the bytes' end is reached in either way. The caller stops it. */
export async function startUploadGateway(
  kind: DataPathKind,
  options: { env?: Record<string, string>; download?: FilesDataPath['download'] } = {},
) {
  const fake: FakeFiles = {
    begun: [],
    whole: [],
    received: 0,
    broken: 0,
    byteSizeMax: Number.POSITIVE_INFINITY,
    refusal: undefined,
    beforeReading: async () => undefined,
  };
  const logged: Array<Record<string, unknown>> = [];
  const env = {
    RATE_LIMIT_IP_PER_MINUTE: '100000',
    RATE_LIMIT_PRINCIPAL_PER_MINUTE: '100000',
    UPLOAD_ATTEMPTS_PER_MINUTE: '100000',
    ...options.env,
  };
  const download = options.download ?? (async () => Promise.reject(new Error('nobody asked for a download')));
  const { dataPath, stop: stopDataPath } = await startDataPath(
    kind,
    { upload: fakeUpload(fake), uploadAvatar: unexpected, download },
    env,
  );
  const gateway = await startTestGateway({
    redisUrl: (await testRedis()).url,
    env,
    logger: createLogger('gateway', 'info', { write: (line) => void logged.push(JSON.parse(line)) }),
    filesData: dataPath,
    authentication: {
      authenticate: async ({ credential }) => ({
        principal: {
          kind: PrincipalKind.API_KEY,
          accountId: randomUUID(),
          username: 'ada',
          credentialId: randomUUID(),
          scopes: credential.value === 'reader' ? ['files:read'] : ['files:upload'],
          allApplications: credential.value !== 'restricted',
        },
      }),
    },
    applications: { findOwnedApplications: async ({ applicationIds }) => ({ applicationIds: [...applicationIds] }) },
    files: {
      beginUpload: async (request) => {
        fake.begun.push(request);
        if (fake.refusal) throw fake.refusal;
        return { ticket: TICKET };
      },
    },
  });
  const path = `/api/v1/panel/upload-file?applicationId=${APPLICATION_ID}&fileName=setup.exe`;
  return {
    ...gateway,
    fake,
    logged,
    url: gateway.baseUrl + path,
    /** Sends the head of an upload, with these lines beside what any has. */
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
