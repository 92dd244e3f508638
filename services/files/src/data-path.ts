import { ACTOR_HEADER } from '@latchkey/audit/actor';
import { bodyRoute, type HttpRoute } from '@latchkey/kit/rpc/server/http-route';
import { UploadAvatarResponseSchema } from '@latchkey/proto/latchkey/files/v1/avatar_pb';
import { UploadFileResponseSchema } from '@latchkey/proto/latchkey/files/v1/file_pb';
import type { ReceiveAvatar } from './avatars/receive-avatar.ts';
import type { FilesContext } from './context.ts';
import { createDownloadHandler, downloadRoutes } from './storage/download/download-handler.ts';
import { createReceiveUpload } from './storage/upload/receive-upload.ts';

/** Uploads and downloads, whose bytes do not travel as messages (architecture 4). */
export const createDataPath = (ctx: FilesContext, uploadAvatar: ReceiveAvatar) => {
  return { upload: createReceiveUpload(ctx), uploadAvatar, download: createDownloadHandler(ctx) };
};

export function dataPathRoutes({ upload, uploadAvatar, download }: ReturnType<typeof createDataPath>): HttpRoute[] {
  const uploads = bodyRoute({
    path: '/uploads',
    output: UploadFileResponseSchema,
    handle: (req, requestId) => upload(String(req.headers['x-upload-ticket'] ?? ''), req, requestId),
  });
  const avatars = bodyRoute({
    path: '/avatars',
    output: UploadAvatarResponseSchema,
    handle: (req, requestId) => {
      const { 'x-account-id': accountId = '', 'x-client-network': clientNetwork = '', 'content-length': length } = req.headers;
      const actor = req.headers[ACTOR_HEADER];
      return uploadAvatar({
        accountId: String(accountId),
        clientNetwork: String(clientNetwork),
        body: req,
        byteSize: length === undefined ? undefined : Number(length),
        requestId,
        actor: typeof actor === 'string' ? actor : undefined,
      });
    },
  });
  return [uploads, avatars, ...downloadRoutes(download)];
}
