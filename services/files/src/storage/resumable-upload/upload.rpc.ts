import { create } from '@bufbuild/protobuf';
import { findReplay } from '@latchkey/audit/idempotency';
import { fromRow } from '@latchkey/kit/rpc/from-row';
import type { RpcImpl } from '@latchkey/kit/rpc/route';
import { type Upload, UploadSchema, type UploadService } from '@latchkey/proto/latchkey/files/v1/upload_pb';
import type { FilesContext } from '../../context.ts';
import { toRef } from '../file/file.rpc.ts';
import { createUpload, endUpload, findUpload, listUploads, type ResumableUpload } from './resumable-upload.ts';

export function uploadRpc(ctx: FilesContext): RpcImpl<typeof UploadService> {
  return {
    async createUpload(request, call) {
      const given = { ...request, ...toRef(request, call), byteSize: Number(request.byteSize) };
      return { upload: toMessage(await createUpload(ctx, given)) };
    },
    async getUpload({ accountId, uploadId, repeatsAppend }) {
      const appended = repeatsAppend ? await findReplay<ResumableUpload>(ctx.db) : undefined;
      return { upload: toMessage(appended ?? (await findUpload(ctx, accountId, uploadId))) };
    },
    async listUploads({ accountId }) {
      return { uploads: (await listUploads(ctx, accountId)).map(toMessage) };
    },
    endUpload: ({ accountId, uploadId }) => endUpload(ctx, accountId, uploadId),
  };
}

export function toMessage({ fileId, ...upload }: ResumableUpload): Upload {
  return create(
    UploadSchema,
    fromRow(UploadSchema, {
      ...upload,
      fileName: upload.displayName,
      fileId: fileId ?? upload.id,
      isReplacement: fileId !== null,
    }),
  );
}
