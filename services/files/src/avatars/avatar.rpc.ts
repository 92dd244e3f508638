import { actingFor } from '@latchkey/audit/actor';
import type { RpcImpl } from '@latchkey/kit/rpc/route';
import type { AvatarService } from '@latchkey/proto/latchkey/files/v1/avatar_pb';
import type { FilesContext } from '../context.ts';
import { findUploadedAvatar, getAvatar, removeAvatar } from './avatar.ts';

export function avatarRpc(ctx: FilesContext): RpcImpl<typeof AvatarService> {
  return {
    async getAvatar({ accountId, avatarId }) {
      const found = await getAvatar(ctx, accountId, avatarId);
      return { avatarId: found.avatarId, image: new Uint8Array(found.image) };
    },
    async findUploadedAvatar() {
      const avatarId = await findUploadedAvatar(ctx);
      return avatarId === undefined ? {} : { avatarId };
    },
    removeAvatar: ({ accountId }, call) => removeAvatar(actingFor(ctx, call), accountId),
  };
}
