import { within } from '@latchkey/kit/within';
import type { FilesContext } from '../../context.ts';
import { objectKey } from '../object-store/object-store.ts';
import { isCommitted } from './commit-upload.store.ts';
import { abandonIntent, type ClaimedIntent, deleteIntent, postponeIntent } from './upload-intent.store.ts';

/** How long the one whose upload failed waits until its rests are gone, in milliseconds; the sweeper removes what takes longer. */
const CLEAN_UP_MS_MAX = 2_000;

/** When the sweeper looks again for what a store that failed has finished all the same, in times of a lease: a minute by default. */
const LOOK_AGAIN_LEASES = 6;

/**
 * Ends an upload that failed: frees the account's lease and removes what was stored.
 *
 * @param lookAgain whether the store failed, and so may yet finish what it was asked
 * @returns `committed` where it did not fail after all; `unknown` where the database could not be asked, so that nothing was removed:
 *   the sweeper decides once it can
 */
export async function giveUp(
  ctx: FilesContext,
  { id, applicationId }: ClaimedIntent,
  lookAgain: boolean,
): Promise<'committed' | 'given up' | 'unknown'> {
  try {
    // Waits for a commit that is still under way, so that its outcome is known after.
    await abandonIntent(ctx.db, id);
    if (await isCommitted(ctx.db, id)) return 'committed';
  } catch (err) {
    ctx.logger.warn({ err, fileId: id }, 'failed upload is left to the sweeper');
    return 'unknown';
  }
  await within(CLEAN_UP_MS_MAX, removeRest(ctx, id, objectKey(applicationId, id), lookAgain));
  return 'given up';
}

async function removeRest(ctx: FilesContext, id: string, key: string, lookAgain: boolean): Promise<void> {
  try {
    await ctx.store.remove(key);
    if (lookAgain) await postponeIntent(ctx.db, id, ctx.limits.uploadLeaseMs * LOOK_AGAIN_LEASES);
    else await deleteIntent(ctx.db, id);
  } catch (err) {
    ctx.logger.warn({ err, fileId: id }, 'what a failed upload left is left to the sweeper');
  }
}
