import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { findReplay } from '@latchkey/audit/idempotency';
import { REQUEST_ID_HEADER, type RpcImpl } from '@latchkey/kit/rpc/route';
import { type Upload, UploadSchema, type UploadService } from '@latchkey/proto/latchkey/files/v1/upload_pb';
import type { FilesContext } from '../../context.ts';
import { createUpload, endUpload, findUpload, listUploads, type ResumableUpload } from './resumable-upload.ts';

export function uploadRpc(ctx: FilesContext): RpcImpl<typeof UploadService> {
  return {
    async createUpload({ byteSize, ...request }, { requestHeader }) {
      const requestId = requestHeader.get(REQUEST_ID_HEADER) ?? '';
      return { upload: toMessage(await createUpload(ctx, { ...request, byteSize: Number(byteSize), requestId })) };
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

export function toMessage(upload: ResumableUpload): Upload {
  return create(UploadSchema, {
    id: upload.id,
    applicationId: upload.applicationId,
    fileName: upload.displayName,
    byteSize: BigInt(upload.byteSize),
    byteOffset: BigInt(upload.byteOffset),
    expectedChecksum: new Uint8Array(upload.expectedChecksum ?? []),
    createdAt: timestampFromDate(upload.createdAt),
    expiresAt: timestampFromDate(upload.expiresAt),
    checksum: new Uint8Array(upload.checksum ?? []),
    metadata: upload.metadata,
    fileId: upload.fileId ?? upload.id,
    isReplacement: upload.fileId !== null,
  });
}
