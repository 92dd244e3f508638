import type { ServiceImpl } from '@connectrpc/connect';
import type { AvatarService } from '@latchkey/proto/latchkey/files/v1/avatar_pb';
import type { FilesContext } from '../context.ts';
import { getAvatar } from './get-avatar.ts';

export function avatarRpc(ctx: Pick<FilesContext, 'db' | 'store'>): ServiceImpl<typeof AvatarService> {
  return {
    async getAvatar({ accountId, avatarId }) {
      const found = await getAvatar(ctx, accountId, avatarId);
      return { avatarId: found.avatarId, image: new Uint8Array(found.image) };
    },
  };
}
