import { timestampDate } from '@bufbuild/protobuf/wkt';
import { runTransaction } from '@latchkey/audit/transaction';
import { parseId, toId } from '@latchkey/kit/validation/id';
import type { SetAvatarRequest } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { recordAction } from '../audit/actions.ts';
import type { ActingContext } from '../context.ts';
import { errors } from '../proto-errors.ts';
import { lockAccount, updateAccount } from './account.store.ts';

/**
 * Records an account's avatar or its removal, unless a later one is recorded. It may be repeated,
 * in any order. Of two at the same time the greater id is the later.
 * @returns the account's avatar or removal, and the avatar that it replaced
 * @throws `avatar_invalid`, `account_not_found`
 */
export async function setAvatar(ctx: ActingContext, { removed, ...request }: SetAvatarRequest) {
  const [accountId, avatarId] = [toId(request.accountId), parseId(request.avatarId)];
  const uploadedAt = request.uploadedAt && timestampDate(request.uploadedAt);
  if (!avatarId || !uploadedAt?.getTime()) throw errors.avatar_invalid();
  return runTransaction(ctx.db, async (tx) => {
    const account = await lockAccount(tx, accountId);
    if (!account) throw errors.account_not_found();
    const { avatar_id: currentId, avatar_uploaded_at: currentAt } = account;
    if (currentId && currentAt) {
      const apartMs = uploadedAt.getTime() - currentAt.getTime();
      const isLater = apartMs > 0 || (apartMs === 0 && avatarId > currentId);
      if (!isLater) return { avatarId: currentId };
    }
    await updateAccount(tx, accountId, { avatar_id: avatarId, avatar_uploaded_at: uploadedAt, avatar_removed: removed });
    const previousAvatarId = account.avatar_removed ? undefined : (currentId ?? undefined);
    if (!removed) await recordAction(ctx, tx, { accountId }, 'account.avatar_changed', { avatarId });
    else if (previousAvatarId) await recordAction(ctx, tx, { accountId }, 'account.avatar_removed');
    return { avatarId, previousAvatarId };
  });
}
