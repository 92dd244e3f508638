import { ACTOR_HEADER } from '@latchkey/kit/audit/actor';
import { bodyRoute } from '@latchkey/kit/rpc/body-call';
import { observeRoute } from '@latchkey/kit/rpc/observed-route';
import type { PlainRoute } from '@latchkey/kit/rpc/plain-route';
import { UploadAvatarResponseSchema } from '@latchkey/proto/latchkey/files/v1/avatar_pb';
import { UploadFileResponseSchema } from '@latchkey/proto/latchkey/files/v1/file_pb';
import type { ReceiveAvatarBody } from './avatar/avatar.body.ts';
import type { FilesContext } from './context.ts';
import { createDownloadHandler, type DownloadHandler, downloadRoutes } from './storage/download/download-handler.ts';
import { createReceiveUpload, type ReceiveUpload } from './storage/upload/receive-upload.ts';

/** The way of bytes, which do not travel as messages (architecture 4). */
export interface FilesDataPath {
  readonly upload: ReceiveUpload;
  readonly uploadAvatar: ReceiveAvatarBody;
  readonly download: DownloadHandler;
}

export function createDataPath(ctx: FilesContext, uploadAvatar: ReceiveAvatarBody): FilesDataPath {
  return { upload: createReceiveUpload(ctx), uploadAvatar, download: createDownloadHandler(ctx) };
}

/** The data path over HTTP. */
export function dataPathRoutes({ upload, uploadAvatar, download }: FilesDataPath): PlainRoute[] {
  const uploads = bodyRoute({
    path: '/uploads',
    output: UploadFileResponseSchema,
    handle: (req, requestId) => upload(String(req.headers['x-upload-ticket'] ?? ''), req, requestId),
  });
  const avatars = bodyRoute({
    path: '/avatars',
    output: UploadAvatarResponseSchema,
    handle: (req, requestId) => {
      const {
        'x-account-id': accountId,
        'x-client-network': clientNetwork,
        [ACTOR_HEADER]: actor,
        'content-length': length,
      } = req.headers;
      return uploadAvatar({
        accountId: String(accountId ?? ''),
        clientNetwork: String(clientNetwork ?? ''),
        body: req,
        byteSize: length === undefined ? undefined : Number(length),
        requestId,
        actor: typeof actor === 'string' ? actor : undefined,
      });
    },
  });
  return [uploads, avatars, ...downloadRoutes(download)].map(observeRoute);
}
