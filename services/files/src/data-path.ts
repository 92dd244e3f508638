import type { IncomingMessage } from 'node:http';
import { ACTOR_HEADER } from '@latchkey/audit/actor';
import { bodyRoute, type HttpRoute } from '@latchkey/kit/rpc/server/http-route';
import { UploadAvatarResponseSchema } from '@latchkey/proto/latchkey/files/v1/avatar_pb';
import { UploadFileResponseSchema } from '@latchkey/proto/latchkey/files/v1/file_pb';
import { AppendUploadResponseSchema } from '@latchkey/proto/latchkey/files/v1/upload_pb';
import type { ReceiveAvatar } from './avatars/receive-avatar.ts';
import type { FilesContext } from './context.ts';
import { createDownloadHandler, downloadRoutes } from './storage/download/download-handler.ts';
import { type Chunk, createAppendUpload } from './storage/resumable-upload/append-upload.ts';
import { toMessage } from './storage/resumable-upload/upload.rpc.ts';
import { createReceiveUpload } from './storage/upload/receive-upload.ts';
import type { AccountBody } from './storage/upload/upload-call.ts';

/** Uploads and downloads, whose bytes are HTTP bodies instead of messages. */
export const createDataPath = (ctx: FilesContext, uploadAvatar: ReceiveAvatar) => {
  const [receive, append] = [createReceiveUpload(ctx), createAppendUpload(ctx)];
  const upload = (ticket: string, body: IncomingMessage, requestId: string) => receive({ ticket, body, requestId });
  const appendUpload = async (chunk: Chunk) => ({ upload: toMessage(await append(chunk)) });
  return { upload, appendUpload, uploadAvatar, download: createDownloadHandler(ctx) };
};

export function dataPathRoutes({ upload, appendUpload, uploadAvatar, download }: ReturnType<typeof createDataPath>): HttpRoute[] {
  const uploads = bodyRoute({
    path: '/uploads',
    output: UploadFileResponseSchema,
    handle: (req, requestId) => upload(String(req.headers['x-upload-ticket'] ?? ''), req, requestId),
  });
  const chunks = bodyRoute({
    path: '/upload-chunks',
    output: AppendUploadResponseSchema,
    handle: (req, requestId) => {
      const { 'x-upload-id': uploadId, 'x-upload-offset': offset } = req.headers;
      return appendUpload({ ...readBody(req, requestId), uploadId: String(uploadId), byteOffset: Number(offset) });
    },
  });
  const avatars = bodyRoute({
    path: '/avatars',
    output: UploadAvatarResponseSchema,
    handle: (req, requestId) =>
      uploadAvatar({ ...readBody(req, requestId), clientNetwork: String(req.headers['x-client-network'] ?? '') }),
  });
  return [uploads, chunks, avatars, ...downloadRoutes(download)];
}

function readBody(req: IncomingMessage, requestId: string): AccountBody {
  const { 'x-account-id': accountId = '', 'content-length': length, [ACTOR_HEADER]: actor, 'x-checksum': checksum } = req.headers;
  return {
    ...{ accountId: String(accountId), body: req, requestId },
    byteSize: length === undefined ? undefined : Number(length),
    actor: typeof actor === 'string' ? actor : undefined,
    checksum: typeof checksum === 'string' ? Buffer.from(checksum, 'hex') : undefined,
    idempotency: req.headers,
  };
}
