import { parseId } from '@latchkey/kit/id';
import { type ActingContext, recordAccount } from '../audit/audit.ts';
import { errors } from '../errors.ts';
import { replaceAvatar, selectAvatarLocked } from './avatar.store.ts';

/** An avatar that is stored. */
export interface StoredAvatar {
  readonly accountId: string;
  readonly avatarId: string;
  /** When its upload was begun. */
  readonly uploadedAt: Date | undefined;
}

/** The avatar that an account has, and the one that it had where that was another. */
export interface CurrentAvatar {
  readonly avatarId: string;
  readonly previousAvatarId?: string;
}

/**
 * Records an account's avatar, unless one that was uploaded later is there. Whoever calls may do so again, and hours later: the outcome of several
 * uploads does not depend on the order in which they are recorded.
 *
 * @throws `avatar_invalid`, `account_not_found`
 */
export async function setAvatar(ctx: ActingContext, { accountId, avatarId, uploadedAt }: StoredAvatar): Promise<CurrentAvatar> {
  const [account, avatar] = [parseId(accountId), parseId(avatarId)];
  if (!avatar || !uploadedAt) throw errors.avatar_invalid();
  if (!account) throw errors.account_not_found();
  return ctx.db.transaction().execute(async (tx) => {
    const found = await selectAvatarLocked(tx, account);
    if (!found) throw errors.account_not_found();
    if (found.avatar && !isLater({ id: avatar, uploadedAt }, found.avatar)) return { avatarId: found.avatar.id };
    await replaceAvatar(tx, account, { id: avatar, uploadedAt });
    await recordAccount(ctx, tx, account, 'account.avatar_changed', { avatarId: avatar });
    return { avatarId: avatar, ...(found.avatar && { previousAvatarId: found.avatar.id }) };
  });
}

interface Upload {
  readonly id: string;
  readonly uploadedAt: Date;
}

function isLater(a: Upload, b: Upload): boolean {
  const apartMs = a.uploadedAt.getTime() - b.uploadedAt.getTime();
  return apartMs > 0 || (apartMs === 0 && a.id > b.id);
}
