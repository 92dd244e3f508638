import { buffer } from 'node:stream/consumers';
import type { Acting } from '@latchkey/audit/actor';
import { findReplay } from '@latchkey/audit/idempotency';
import { runStatement } from '@latchkey/audit/transaction';
import { commonErrors } from '@latchkey/kit/errors/errors';
import { newId, parseId, toId } from '@latchkey/kit/validation/id';
import type { FilesContext } from '../context.ts';
import { sweepFailures, sweepRemoved } from '../files-metrics.ts';
import { errors, rejectUnavailable } from '../proto-errors.ts';
import { removeObjects, removeObjectsSoon } from '../storage/object-deletion/object-deletion.ts';
import { objectKey } from '../storage/object-store/object-store.ts';
import * as rows from './avatar.store.ts';

export type AvatarContext = Pick<FilesContext, 'db' | 'store' | 'avatarLimits' | 'logger' | 'setAvatar'>;

const SWEEP_MAX = 100;

/**
 * An account's avatar, or only the one with this id (specification 4.3). Throws `avatar_not_found`;
 * `dependency_unavailable` where the store fails.
 */
export async function getAvatar(
  ctx: Pick<FilesContext, 'db' | 'store'>,
  accountId: string,
  avatarId: string | undefined,
): Promise<{ avatarId: string; image: Buffer }> {
  const owner = toId(accountId);
  const wanted = avatarId === undefined ? undefined : toId(avatarId);
  const found = await rows.selectCurrent(ctx.db, owner, wanted);
  if (!found?.image_id) throw errors.avatar_not_found();
  const reading = ctx.store.read(objectKey(owner, found.image_id)).then((body) => body && buffer(body));
  const image = await reading.catch(rejectUnavailable);
  if (image) return { avatarId: found.id, image };
  // The image of an avatar that was replaced a moment ago is gone.
  if ((await rows.selectCurrent(ctx.db, owner, wanted))?.image_id !== found.image_id) return getAvatar(ctx, owner, wanted);
  throw new Error(`Avatar ${found.id} has no image`);
}

/**
 * Id of the avatar of an earlier upload with the idempotency key of this call; undefined without
 * one. An avatar that is stored, but not yet the account's, is recorded first.
 *
 * @throws `idempotency_key_reused`, `idempotency_in_progress`, `dependency_unavailable`
 */
export async function findUploadedAvatar(ctx: AvatarContext): Promise<string | undefined> {
  const id = await findReplay<string>(ctx.db);
  const avatar = id === undefined ? undefined : await rows.selectAvatar(ctx.db, id);
  if (avatar?.state === 'stored') await removeObjectsSoon(ctx, await recordAvatar(ctx, avatar));
  return id;
}

/**
 * Takes the avatar from an account, and that of every upload begun before; without one it succeeds
 * too. The removal is stored first: if identity fails, the sweeper completes it. Throws
 * `avatar_not_found` for text other than a UUID, and `outcome_unknown` where the sweeper has to.
 */
export async function removeAvatar(ctx: Acting<AvatarContext>, accountText: string): Promise<void> {
  const accountId = parseId(accountText);
  if (!accountId) throw errors.avatar_not_found();
  const removal = await runStatement(ctx.db, (db) => rows.insertRemoval(db, { id: newId(), accountId, origin: ctx.origin }));
  const keys = await recordAvatar(ctx, removal).catch((cause: unknown) => {
    throw Object.assign(commonErrors.outcome_unknown(), { cause });
  });
  await removeObjectsSoon(ctx, keys);
}

/**
 * Makes a stored avatar the account's instead of earlier ones, never instead of a later one; or
 * completes a removal. Identity comes first: after a crash in between, repeating this has the same
 * result. Returns the keys of objects whose deletion is scheduled.
 */
export async function recordAvatar(ctx: AvatarContext, avatar: rows.Avatar): Promise<string[]> {
  const ending = await ctx.setAvatar(avatar).then(
    (current): rows.Ending => ({ state: current === avatar.id ? 'recorded' : 'replaced' }),
    (err: { readonly reason?: unknown }): rows.Ending => {
      if (err.reason !== 'account_not_found') throw err;
      return { state: 'refused', refusal: 'account_not_found' };
    },
  );
  return ctx.db.transaction().execute(async (tx) => {
    await rows.lockAvatars(tx, avatar.account_id);
    return rows.endStored(tx, avatar, ending);
  });
}

/**
 * Ends the avatars that no worker made in time, records those that are stored or removed, and
 * deletes the rows of those that ended. A later sweep retries failures.
 */
export async function sweepAvatars(ctx: AvatarContext, claimMs: number, signal: AbortSignal): Promise<void> {
  for (let done = SWEEP_MAX; done === SWEEP_MAX && !signal.aborted; ) {
    done = 0;
    for (const avatar of await rows.claimDueAvatars(ctx.db, { limit: SWEEP_MAX, claimMs })) {
      if (signal.aborted) return;
      try {
        if (avatar.state === 'waiting') await rows.endWaiting(ctx.db, avatar.id, 'abandoned');
        else if (avatar.state === 'stored' || avatar.state === 'removing')
          await removeObjects(ctx, await recordAvatar(ctx, avatar));
        else await rows.deleteEnded(ctx.db, avatar.id);
        done += 1;
        sweepRemoved.add(1, 'avatar');
      } catch (err) {
        sweepFailures.add(1, 'avatar');
        ctx.logger.warn({ err, avatarId: avatar.id }, 'avatar not swept, to be retried');
      }
    }
  }
}
