import { DomainError } from '@latchkey/kit/errors';
import { insertObjectDeletion } from '../file/file.store.ts';
import { objectKey } from '../object-store/object-store.ts';
import type { Avatar } from './avatar.store.ts';
import { type AvatarContext, ENDED_KEPT_MS } from './avatar-context.ts';
import { removeNoted } from './noted-object.ts';
import { endStored, hasLater, lockAvatars, replaceEarlier, setRecorded } from './record-avatar.store.ts';

/** What became of an avatar that is stored. */
export interface Recorded {
  /** The account that it was for is not there. */
  readonly refusal?: 'account_not_found';
  /** Removes the images that have no use any more; never rejects. */
  removeRest(): Promise<void>;
}

/**
 * Makes an avatar that is stored the account's, in the place of any that was uploaded earlier. Identity is told first: from then on this avatar is the
 * account's, and if we die before we have noted it, whoever takes it up again comes to the same end. An avatar never takes the place of one that was
 * uploaded later, however late it is recorded.
 *
 * @throws DomainError `dependency_unavailable` where identity can't be told
 */
export async function recordAvatar(ctx: AvatarContext, avatar: Avatar): Promise<Recorded> {
  const { id, accountId } = avatar;
  const current = await ctx.setAvatar({ accountId, avatarId: id, uploadedAt: avatar.createdAt }).catch((err: unknown) => {
    if (err instanceof DomainError && err.reason === 'account_not_found') return undefined;
    throw err;
  });
  const images = await ctx.db.transaction().execute(async (tx) => {
    await lockAvatars(tx, accountId);
    const unused: string[] = [];
    if (current === id && !(await hasLater(tx, avatar))) {
      if (await setRecorded(tx, id)) unused.push(...(await replaceEarlier(tx, avatar, ENDED_KEPT_MS)));
    } else {
      const end =
        current === undefined ? ({ state: 'refused', refusal: 'account_not_found' } as const) : ({ state: 'replaced' } as const);
      const image = await endStored(tx, id, { ...end, keptMs: ENDED_KEPT_MS });
      if (image !== undefined) unused.push(image);
    }
    for (const image of unused) await insertObjectDeletion(tx, objectKey(accountId, image));
    return unused;
  });
  const keys = images.map((image) => objectKey(accountId, image));
  return {
    ...(current === undefined && { refusal: 'account_not_found' as const }),
    removeRest: () => removeNoted(ctx, keys),
  };
}
