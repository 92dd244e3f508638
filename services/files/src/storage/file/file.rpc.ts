import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { actingFor } from '@latchkey/kit/audit/actor';
import { REQUEST_ID_HEADER } from '@latchkey/kit/rpc/route';
import type { FileService } from '@latchkey/proto/latchkey/files/v1/file_pb';
import type { FilesContext } from '../../context.ts';
import type { ApplicationRef } from '../application/owned-application.ts';
import { checkFileName } from './check-file-name.ts';
import { deleteFile } from './delete-file.ts';
import { createDownloadUrl } from './download-url.ts';
import { getFilesMetadata } from './files-metadata.ts';
import { type FileRow, listFiles } from './list-files.ts';
import { renameFile } from './rename-file.ts';
import { getStorageUsage } from './storage-usage.ts';

type Impl = ServiceImpl<typeof FileService>;
type Methods =
  | 'checkFileName'
  | 'getFilesMetadata'
  | 'listFiles'
  | 'renameFile'
  | 'deleteFile'
  | 'createDownloadUrl'
  | 'getStorageUsage';

/** What is done with files that exist. */
export function fileRpc(ctx: FilesContext): Pick<Impl, Methods> {
  return {
    async checkFileName(request, call) {
      await checkFileName(ctx, toRef(request, call), request.fileName);
      return {};
    },
    async getFilesMetadata(request, call) {
      const { totalFiles, lastUploadedAt } = await getFilesMetadata(ctx, toRef(request, call));
      return { totalFiles: BigInt(totalFiles), ...(lastUploadedAt && { lastUploadedAt: timestampFromDate(lastUploadedAt) }) };
    },
    async listFiles(request, call) {
      const { rows, total } = await listFiles(ctx, toRef(request, call), request);
      return { files: rows.map(toMessage), totalFiles: BigInt(total) };
    },
    async renameFile(request, call) {
      await renameFile(actingFor(ctx, call), toRef(request, call), request.fileId, request.fileName);
      return {};
    },
    async deleteFile(request, call) {
      await deleteFile(actingFor(ctx, call), toRef(request, call), request.fileId);
      return {};
    },
    async createDownloadUrl(request, call) {
      const { url, expiresAt } = await createDownloadUrl(ctx, toRef(request, call), request.fileId, request.lifetimeSeconds);
      return { url, expiresAt: timestampFromDate(expiresAt) };
    },
    async getStorageUsage({ accountId }, { requestHeader }) {
      const { chargedMib, fileCount } = await getStorageUsage(ctx, accountId, requestHeader.get(REQUEST_ID_HEADER) ?? '');
      return {
        chargedMib: BigInt(chargedMib),
        chargedMibMax: BigInt(ctx.limits.allowanceMib),
        fileCount: BigInt(fileCount),
        fileCountMax: BigInt(ctx.limits.fileCountMax),
      };
    },
  };
}

function toRef(
  { accountId, applicationId }: Omit<ApplicationRef, 'requestId'>,
  { requestHeader }: HandlerContext,
): ApplicationRef {
  return { accountId, applicationId, requestId: requestHeader.get(REQUEST_ID_HEADER) ?? '' };
}

function toMessage(row: FileRow) {
  return {
    id: row.id,
    displayName: row.display_name,
    byteSize: BigInt(row.byte_size),
    checksum: new Uint8Array(row.checksum),
    contentType: row.content_type,
    presignedUrlsCount: BigInt(row.created_count ?? 0),
    ...(row.last_created_at && { lastPresignedUrlCreatedAt: timestampFromDate(row.last_created_at) }),
    createdAt: timestampFromDate(row.created_at),
  };
}
