import { actingFor } from '@latchkey/audit/actor';
import type { RpcImpl } from '@latchkey/kit/rpc/route';
import type { AvatarService } from '@latchkey/proto/latchkey/files/v1/avatar_pb';
import type { FilesContext } from '../context.ts';
import type { Avatars } from './avatar.queue.ts';
import { getAvatar } from './avatar.ts';

export function avatarRpc(
  ctx: Pick<FilesContext, 'db' | 'store'>,
  { remove, findUploaded }: Pick<Avatars, 'remove' | 'findUploaded'>,
): RpcImpl<typeof AvatarService> {
  return {
    async getAvatar({ accountId, avatarId }) {
      const found = await getAvatar(ctx, accountId, avatarId);
      return { avatarId: found.avatarId, image: new Uint8Array(found.image) };
    },
    async findUploadedAvatar() {
      const avatarId = await findUploaded();
      return avatarId === undefined ? {} : { avatarId };
    },
    removeAvatar: ({ accountId }, call) => remove(accountId, actingFor({}, call).origin),
  };
}
