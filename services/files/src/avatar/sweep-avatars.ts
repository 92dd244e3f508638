import { sweepFailures, sweepRemoved } from '../files-metrics.ts';
import { type Avatar, claimDueAvatars, deleteEnded, endWaiting } from './avatar.store.ts';
import { type AvatarContext, ENDED_KEPT_MS } from './avatar-context.ts';
import { removeNoted } from './noted-object.ts';
import { recordAvatar } from './record-avatar.ts';

/** Most that is taken at once. */
const BATCH = 100;

/**
 * Takes up the avatars that nobody has in hand any more: gives up those that nobody has made in time, tells identity of those that are stored and that
 * it may not know of, and forgets those that are through. What fails is tried again by a later sweep.
 *
 * @param claimMs how long other sweepers leave alone what this one has taken
 * @throws where the database can't be asked
 */
export async function sweepAvatars(ctx: AvatarContext, claimMs: number, signal: AbortSignal): Promise<void> {
  for (let done = BATCH; done === BATCH && !signal.aborted; ) {
    done = 0;
    for (const avatar of await claimDueAvatars(ctx.db, { limit: BATCH, claimMs })) {
      if (signal.aborted) return;
      try {
        await takeUp(ctx, avatar);
        done += 1;
        sweepRemoved.add(1, 'avatar');
      } catch (err) {
        sweepFailures.add(1, 'avatar');
        ctx.logger.warn({ err, avatarId: avatar.id }, 'avatar not taken up, to be tried again');
      }
    }
  }
}

async function takeUp(ctx: AvatarContext, avatar: Avatar): Promise<void> {
  if (avatar.state === 'waiting') await endWaiting(ctx.db, avatar.id, { state: 'abandoned', keptMs: ENDED_KEPT_MS });
  else if (avatar.state === 'stored') await removeNoted(ctx, (await recordAvatar(ctx, avatar)).unused);
  else await deleteEnded(ctx.db, avatar.id);
}
