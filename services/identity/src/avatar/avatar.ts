import { parseId } from '@latchkey/kit/validation/id';
import { type ActingContext, recordAccount } from '../audit/audit.ts';
import { errors } from '../errors.ts';
import { type Avatar, lockAvatar, updateAvatar } from './avatar.store.ts';

export interface StoredAvatar {
  readonly accountId: string;
  readonly avatarId: string;
  readonly uploadedAt: Date | undefined;
}

/**
 * Records an account's avatar, unless a later upload is recorded. It may be repeated, in any order.
 * @returns the account's avatar, and the one that it replaced
 * @throws `avatar_invalid`, `account_not_found`
 */
export async function setAvatar(
  ctx: ActingContext,
  { accountId, avatarId, uploadedAt }: StoredAvatar,
): Promise<{ avatarId: string; previousAvatarId?: string }> {
  const [account, id] = [parseId(accountId), parseId(avatarId)];
  if (!id || !uploadedAt) throw errors.avatar_invalid();
  if (!account) throw errors.account_not_found();
  return ctx.db.transaction().execute(async (tx) => {
    const current = await lockAvatar(tx, account);
    if (current === undefined) throw errors.account_not_found();
    if (current && !isLater({ id, uploadedAt }, current)) return { avatarId: current.id };
    await updateAvatar(tx, account, { id, uploadedAt });
    await recordAccount(ctx, tx, account, 'account.avatar_changed', { avatarId: id });
    return { avatarId: id, ...(current && { previousAvatarId: current.id }) };
  });
}

function isLater(a: Avatar, b: Avatar): boolean {
  const apartMs = a.uploadedAt.getTime() - b.uploadedAt.getTime();
  return apartMs > 0 || (apartMs === 0 && a.id > b.id);
}
