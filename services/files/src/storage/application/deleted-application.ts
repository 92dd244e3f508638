import { BY_ITSELF } from '@latchkey/kit/audit/actor';
import type { FilesContext } from '../../context.ts';
import { type FileEvent, recordFiles } from '../file/audit.ts';
import { chargeMib } from '../file/charge.ts';
import { objectKey } from '../object-store/object-store.ts';
import {
  abandonUploads,
  type DeletedApplication,
  deleteFiles,
  deleteTombstones,
  deleteUsage,
  insertObjectDeletions,
  insertTombstone,
  type RemovedFile,
  subtractUsage,
} from './deleted-application.store.ts';

export type { DeletedApplication } from './deleted-application.store.ts';

/** What forgetting works on. */
export type ForgetContext = Pick<FilesContext, 'db' | 'logger' | 'clock'>;

/** Most files removed in one transaction. */
const BATCH_MAX = 500;

/** The event log's 24 hours, and one more for clocks that differ: an application can't be heard of again once its tombstone goes. */
const TOMBSTONE_HOURS = 25;
const TOMBSTONES_MAX = 1_000;

/**
 * Forgets a deleted application: from the first commit on nothing can be added to it, then its files go, some at a time, each with a note of the object
 * that is to be removed. Stopped at any point it may be begun again, also by several at once; done twice it is done.
 *
 * @param onObjectsToRemove called after each commit that leaves objects to remove
 */
export async function forgetApplication(
  ctx: ForgetContext,
  application: DeletedApplication,
  onObjectsToRemove: () => void,
): Promise<void> {
  const { applicationId } = application;
  await ctx.db.transaction().execute(async (tx) => {
    await insertTombstone(tx, applicationId);
    // Waits for an upload that is being committed, whose file is found below.
    await abandonUploads(tx, application);
  });
  let fileCount = 0;
  // Until there is none: one batch may be smaller than another, as others may be removing files as well.
  for (let removed = await forgetFiles(ctx, applicationId); removed > 0; removed = await forgetFiles(ctx, applicationId)) {
    fileCount += removed;
    onObjectsToRemove();
  }
  await deleteUsage(ctx.db, applicationId);
  if (fileCount > 0) ctx.logger.info({ applicationId, fileCount }, 'files of a deleted application removed');
}

/** Removes some files and answers how many. */
async function forgetFiles(ctx: ForgetContext, applicationId: string): Promise<number> {
  return ctx.db.transaction().execute(async (tx) => {
    const removed = await deleteFiles(tx, applicationId, BATCH_MAX);
    if (removed.length === 0) return 0;
    const keys = removed.map(({ id }) => objectKey(applicationId, id));
    await insertObjectDeletions(tx, keys);
    const chargedMib = removed.reduce((sum, { byteSize }) => sum + chargeMib(byteSize), 0);
    await subtractUsage(tx, applicationId, { fileCount: removed.length, chargedMib });
    await recordFiles(tx, BY_ITSELF, ...removed.map((file) => toEvent(applicationId, file)));
    return removed.length;
  });
}

function toEvent(applicationId: string, { id, accountId, displayName }: RemovedFile): FileEvent {
  const changes = { displayName, because: 'application.deleted' };
  return { accountId, applicationId, fileId: id, action: 'file.deleted', changes };
}

/** Removes tombstones that nobody can need any more, up to 1,000; answers how many. */
export async function purgeTombstones(ctx: Pick<FilesContext, 'db'>): Promise<number> {
  return deleteTombstones(ctx.db, TOMBSTONE_HOURS, TOMBSTONES_MAX);
}
