import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { HandlerContext } from '@connectrpc/connect';
import { actingFor } from '@latchkey/audit/actor';
import { fromRow } from '@latchkey/kit/rpc/from-row';
import { REQUEST_ID_HEADER, type RpcImpl } from '@latchkey/kit/rpc/route';
import { FileSchema, type FileService } from '@latchkey/proto/latchkey/files/v1/file_pb';
import type { FilesContext } from '../../context.ts';
import type { ApplicationRef } from '../application/owned-application.ts';
import { abandonTicket, beginUpload } from '../upload/begin-upload.ts';
import { getStorageUsage, getUsageOf, MIB } from '../upload/usage.ts';
import { checkFileName, createDownloadUrl, deleteFile, getFilesMetadata, renameFile } from './file.ts';
import { inspectFile } from './inspect-file.ts';
import { listFiles } from './list-files.ts';

export function fileRpc(ctx: FilesContext): RpcImpl<typeof FileService> {
  return {
    async beginUpload(request, call) {
      const byteSize = request.byteSize === undefined ? undefined : Number(request.byteSize);
      return beginUpload(actingFor(ctx, call), { ...request, ...toRef(request, call), byteSize });
    },
    abandonUpload: ({ ticket }) => abandonTicket(ctx, ticket),
    checkFileName: (request, call) => checkFileName(ctx, toRef(request, call), request.fileName),
    async getFilesMetadata(request, call) {
      const { totalFiles, lastUploadedAt } = await getFilesMetadata(ctx, toRef(request, call));
      return { totalFiles: BigInt(totalFiles), ...(lastUploadedAt && { lastUploadedAt: timestampFromDate(lastUploadedAt) }) };
    },
    async listFiles(request, call) {
      const { rows, total } = await listFiles(ctx, toRef(request, call), request);
      return { files: rows.map((row) => fromRow(FileSchema, row)), totalFiles: BigInt(total) };
    },
    renameFile: (request, call) => {
      return renameFile(actingFor(ctx, call), toRef(request, call), request.fileId, request.fileName);
    },
    deleteFile: (request, call) => deleteFile(actingFor(ctx, call), toRef(request, call), request.fileId),
    async createDownloadUrl(request, call) {
      const { url, expiresAt } = await createDownloadUrl(ctx, toRef(request, call), request.fileId, request.lifetimeSeconds);
      return { url, expiresAt: timestampFromDate(expiresAt) };
    },
    async listApplicationUsages({ accountId, applicationIds }) {
      const usages = await getUsageOf(ctx, accountId, applicationIds);
      return {
        usages: usages.map(({ applicationId, fileCount, chargedMib }) => ({
          applicationId,
          fileCount: BigInt(fileCount),
          chargedMib: BigInt(chargedMib),
        })),
      };
    },
    inspectFile: (request, call) => inspectFile(ctx, toRef(request, call), request),
    async getStorageUsage({ accountId }, { requestHeader }) {
      const { chargedMib, fileCount } = await getStorageUsage(ctx, accountId, requestHeader.get(REQUEST_ID_HEADER) ?? '');
      const { allowanceMib, fileCountMax, byteSizeMax } = ctx.limits;
      return {
        chargedMib: BigInt(chargedMib),
        chargedMibMax: BigInt(allowanceMib),
        fileCount: BigInt(fileCount),
        fileCountMax: BigInt(fileCountMax),
        fileSizeMibMax: BigInt(byteSizeMax / MIB),
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
