import { DomainError } from '@latchkey/kit/errors';
import type { Avatar } from './avatar.store.ts';
import { type AvatarContext, ENDED_KEPT_MS } from './avatar-context.ts';
import { lockAvatars, settleStored } from './record-avatar.store.ts';

/** What became of an avatar that is stored. */
export interface Recorded {
  /** The account that it was for is not there. */
  readonly refusal?: 'account_not_found';
  /** Keys of the images that have no use any more, which are noted for removal. */
  readonly unused: readonly string[];
}

/**
 * Makes an avatar that is stored the account's, in the place of any that was uploaded earlier. Identity is told first: from then on this avatar is the
 * account's, and if we die before we have noted it, whoever takes it up again comes to the same end. An avatar never takes the place of one that was
 * uploaded later, however late it is recorded.
 *
 * @throws DomainError `dependency_unavailable` where identity can't be told
 */
export async function recordAvatar(ctx: AvatarContext, avatar: Avatar): Promise<Recorded> {
  const { id, accountId, createdAt: uploadedAt, origin } = avatar;
  const current = await ctx.setAvatar({ accountId, avatarId: id, uploadedAt, origin }).catch((err: unknown) => {
    if (err instanceof DomainError && err.reason === 'account_not_found') return undefined;
    throw err;
  });
  const unused = await ctx.db.transaction().execute(async (tx) => {
    await lockAvatars(tx, accountId);
    return settleStored(tx, avatar, {
      isCurrent: current === id,
      otherwise: current === undefined ? { state: 'refused', refusal: 'account_not_found' } : { state: 'replaced' },
      keptMs: ENDED_KEPT_MS,
    });
  });
  return { ...(current === undefined && { refusal: 'account_not_found' as const }), unused };
}
