import { auditRoute } from '@latchkey/audit/audit.rpc';
import { withIdempotency } from '@latchkey/audit/idempotency';
import { type RpcRoute, rpcRoute } from '@latchkey/kit/rpc/route';
import { AvatarService } from '@latchkey/proto/latchkey/files/v1/avatar_pb';
import { FileService } from '@latchkey/proto/latchkey/files/v1/file_pb';
import { UploadService } from '@latchkey/proto/latchkey/files/v1/upload_pb';
import { avatarRpc } from './avatars/avatar.rpc.ts';
import type { FilesContext } from './context.ts';
import { fileRpc } from './storage/file/file.rpc.ts';
import { uploadRpc } from './storage/resumable-upload/upload.rpc.ts';

export const filesRoutes = (ctx: FilesContext): RpcRoute[] => [
  withIdempotency(rpcRoute(FileService, fileRpc(ctx)), {
    sealingKey: ctx.resultKey,
    secrets: new Set(['createDownloadUrl']),
    reads: new Set(['checkFileName']),
  }),
  withIdempotency(rpcRoute(UploadService, uploadRpc(ctx)), { sealingKey: ctx.resultKey, reads: new Set(['getUpload']) }),
  withIdempotency(rpcRoute(AvatarService, avatarRpc(ctx)), { sealingKey: ctx.resultKey }),
  auditRoute(ctx.pool),
];
