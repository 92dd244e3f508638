import { parseId } from '@latchkey/kit/validation/id';
import { lockAccount, updateAccount } from '../account/account.store.ts';
import { recordAction } from '../audit/actions.ts';
import type { ActingContext } from '../context.ts';
import { errors } from '../errors.ts';

/**
 * Records an account's avatar, unless a later upload is recorded. It may be repeated, in any order.
 * @param uploadedAt when the upload began; of two at the same time the greater id is the later
 * @returns the account's avatar, and the one that it replaced
 */
export async function setAvatar(
  ctx: ActingContext,
  request: { readonly accountId: string; readonly avatarId: string; readonly uploadedAt: Date | undefined },
): Promise<{ avatarId: string; previousAvatarId?: string | undefined }> {
  const [accountId, avatarId] = [parseId(request.accountId), parseId(request.avatarId)];
  const { uploadedAt } = request;
  if (!avatarId || !uploadedAt) throw errors.avatar_invalid();
  if (!accountId) throw errors.account_not_found();
  return ctx.db.transaction().execute(async (tx) => {
    const account = await lockAccount(tx, accountId);
    if (!account) throw errors.account_not_found();
    const { avatar_id: currentId, avatar_uploaded_at: currentAt } = account;
    if (currentId && currentAt) {
      const apartMs = uploadedAt.getTime() - currentAt.getTime();
      const isLater = apartMs > 0 || (apartMs === 0 && avatarId > currentId);
      if (!isLater) return { avatarId: currentId };
    }
    await updateAccount(tx, accountId, { avatar_id: avatarId, avatar_uploaded_at: uploadedAt });
    await recordAction(ctx, tx, { accountId }, 'account.avatar_changed', { avatarId });
    return { avatarId, previousAvatarId: currentId ?? undefined };
  });
}
