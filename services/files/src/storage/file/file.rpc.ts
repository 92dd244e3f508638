import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { HandlerContext } from '@connectrpc/connect';
import { actingFor } from '@latchkey/audit/actor';
import { fromRow } from '@latchkey/kit/rpc/from-row';
import { REQUEST_ID_HEADER, type RpcImpl } from '@latchkey/kit/rpc/route';
import { toId } from '@latchkey/kit/validation/id';
import {
  ApplicationUsageSchema,
  FileSchema,
  type FileService,
  GetFilesMetadataResponseSchema,
} from '@latchkey/proto/latchkey/files/v1/file_pb';
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
      return fromRow(GetFilesMetadataResponseSchema, await getFilesMetadata(ctx, toRef(request, call)));
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
      const rows = await getUsageOf(ctx, accountId, applicationIds);
      return { usages: rows.map((row) => fromRow(ApplicationUsageSchema, row)) };
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

/** Other text than a UUID names nothing, as an unknown id does. */
export function toRef(given: Omit<ApplicationRef, 'requestId'>, { requestHeader }: HandlerContext): ApplicationRef {
  const requestId = requestHeader.get(REQUEST_ID_HEADER) ?? '';
  return { accountId: toId(given.accountId), applicationId: toId(given.applicationId), requestId };
}
