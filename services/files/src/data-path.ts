import { bodyRoute } from '@latchkey/kit/rpc/body-call';
import type { PlainRoute } from '@latchkey/kit/rpc/plain-route';
import { UploadFileResponseSchema } from '@latchkey/proto/latchkey/files/v1/file_pb';
import type { FilesContext } from './context.ts';
import { createDownloadHandler, type DownloadHandler, downloadRoutes } from './download/download-handler.ts';
import { createUploadBody, type ReceiveBody } from './upload/upload.body.ts';

/** How bytes come and go, which do not travel as messages (architecture 4). */
export interface FilesDataPath {
  readonly upload: ReceiveBody;
  readonly download: DownloadHandler;
}

export function createDataPath(ctx: FilesContext): FilesDataPath {
  return { upload: createUploadBody(ctx), download: createDownloadHandler(ctx) };
}

/** The data path over HTTP. */
export function dataPathRoutes({ upload, download }: FilesDataPath): PlainRoute[] {
  const uploads = bodyRoute({
    path: '/uploads',
    output: UploadFileResponseSchema,
    handle: (req, requestId) => upload(String(req.headers['x-upload-ticket'] ?? ''), req, requestId),
  });
  return [uploads, ...downloadRoutes(download)];
}
