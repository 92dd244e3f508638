import type { Acting } from '@latchkey/kit/audit/actor';
import { within } from '@latchkey/kit/within';
import type { FilesContext } from '../../context.ts';
import { errors } from '../../errors.ts';
import type { ApplicationRef } from '../application/owned-application.ts';
import { objectKey } from '../object-store/object-store.ts';
import { deleteObjectDeletions } from '../sweep/sweep.store.ts';
import { recordFiles } from './audit.ts';
import { chargeMib } from './charge.ts';
import { insertObjectDeletion, OWN_REMOVAL_MS, removeFile, subtractUsage } from './file.store.ts';
import { findFile } from './file-ref.ts';

/** How long an answer waits for the store; what is not removed by then is the sweeper's, in milliseconds. */
const REMOVAL_MS_MAX = 2_000;

/**
 * Removes a file for every call at once. Its object is owed to the store from the moment of the commit on, so that no crash can leave it; it is
 * tried at once, and a store that fails or is slow changes nothing for the caller.
 *
 * @throws `application_not_found`, `file_not_found`
 */
export async function deleteFile(ctx: Acting<FilesContext>, ref: ApplicationRef, fileIdText: string): Promise<void> {
  const { applicationId, fileId } = await findFile(ctx, ref, fileIdText);
  const key = objectKey(applicationId, fileId);
  await ctx.db.transaction().execute(async (tx) => {
    // The file first and then the counter, as uploads do, or the two would wait for each other.
    const removed = await removeFile(tx, applicationId, fileId);
    if (removed === undefined) throw errors.file_not_found();
    await subtractUsage(tx, applicationId, chargeMib(removed.byteSize));
    const { accountId, displayName } = removed;
    await recordFiles(tx, ctx.origin, { accountId, applicationId, fileId, action: 'file.deleted', changes: { displayName } });
    // No longer than a period of the sweeper, as we may be killed in between.
    await insertObjectDeletion(tx, key, Math.min(OWN_REMOVAL_MS, ctx.limits.sweepIntervalMs));
  });
  await within(REMOVAL_MS_MAX, removeObject(ctx, key));
}

/** Never rejects. */
async function removeObject(ctx: FilesContext, key: string): Promise<void> {
  try {
    await ctx.store.remove(key);
    await deleteObjectDeletions(ctx.db, [key]);
  } catch (err) {
    ctx.logger.warn({ err, key }, 'object of a deleted file is left to the sweeper');
  }
}
