import type { FilesContext } from '../context.ts';
import { sweepFailures, sweepRemoved } from '../files-metrics.ts';
import { removeObjects } from '../storage/object-deletion/object-deletion.ts';
import { type Avatar, claimDueAvatars, deleteEnded, type Ending, endStored, endWaiting, lockAvatars } from './avatar.store.ts';

const BATCH = 100;

/**
 * Sets or removes an account's avatar at the identity service; safe to repeat. Returns the id of
 * the account's avatar or removal: this one, or one that began later. Throws `account_not_found`,
 * `dependency_unavailable`.
 */
export type SetAvatar = (avatar: Avatar) => Promise<string>;

export interface AvatarContext extends Pick<FilesContext, 'db' | 'store' | 'avatarLimits' | 'logger'> {
  readonly setAvatar: SetAvatar;
}

/**
 * Makes a stored avatar the account's instead of earlier ones, never instead of a later one; or
 * completes a removal. Identity comes first: after a crash in between, repeating this has the same
 * result. Returns the keys of objects whose deletion is scheduled.
 */
export async function recordAvatar(ctx: AvatarContext, avatar: Avatar): Promise<string[]> {
  const ending = await ctx.setAvatar(avatar).then(
    (current): Ending => ({ state: current === avatar.id ? 'recorded' : 'replaced' }),
    (err: { readonly reason?: unknown }): Ending => {
      if (err.reason !== 'account_not_found') throw err;
      return { state: 'refused', refusal: 'account_not_found' };
    },
  );
  return ctx.db.transaction().execute(async (tx) => {
    await lockAvatars(tx, avatar.account_id);
    return endStored(tx, avatar, ending);
  });
}

/**
 * Ends the avatars that no worker made in time, records those that are stored or removed, and
 * deletes the rows of those that ended. A later sweep retries failures.
 */
export async function sweepAvatars(ctx: AvatarContext, claimMs: number, signal: AbortSignal): Promise<void> {
  for (let done = BATCH; done === BATCH && !signal.aborted; ) {
    done = 0;
    for (const avatar of await claimDueAvatars(ctx.db, { limit: BATCH, claimMs })) {
      if (signal.aborted) return;
      try {
        if (avatar.state === 'waiting') await endWaiting(ctx.db, avatar.id, 'abandoned');
        else if (avatar.state === 'stored' || avatar.state === 'removing')
          await removeObjects(ctx, await recordAvatar(ctx, avatar));
        else await deleteEnded(ctx.db, avatar.id);
        done += 1;
        sweepRemoved.add(1, 'avatar');
      } catch (err) {
        sweepFailures.add(1, 'avatar');
        ctx.logger.warn({ err, avatarId: avatar.id }, 'avatar not swept, to be retried');
      }
    }
  }
}
