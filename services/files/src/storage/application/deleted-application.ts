import { SERVICE_ORIGIN } from '@latchkey/audit/actor';
import { recordAudit } from '@latchkey/audit/record';
import type { DeletedApplication } from '@latchkey/deletions/follow-deletions';
import { DELETIONS_RETAINED_MS } from '@latchkey/deletions/retention';
import type { FilesContext } from '../../context.ts';
import { deleteFiles } from '../file/file.store.ts';
import { describeChange } from '../file/file.ts';
import { insertObjectDeletions } from '../object-deletion/object-deletion.store.ts';
import { objectKey } from '../object-store/object-store.ts';
import { endUploadsTo } from '../resumable-upload/resumable-upload.store.ts';
import { abandonUploadTo } from '../upload/upload-intent.store.ts';
import { subtractUsage } from '../upload/usage.store.ts';
import { chargeMib } from '../upload/usage.ts';
import { completeCleanUp, deleteTombstones, insertTombstone } from './deleted-application.store.ts';

type CleanUpContext = Pick<FilesContext, 'db' | 'logger'>;

const BATCH_MAX = 500;

/** An hour more, for clocks that differ: an application that is still listed has its tombstone. */
const TOMBSTONE_MS = DELETIONS_RETAINED_MS + 3_600_000;

/**
 * Cleans up a deleted application: from the first commit on it takes no files, then its files go in
 * batches. It may be interrupted anywhere, repeated, and run concurrently.
 */
export async function cleanUpApplication(
  ctx: CleanUpContext,
  { applicationId, accountId }: DeletedApplication,
  onObjectsToRemove: () => void,
): Promise<void> {
  await ctx.db.transaction().execute(async (tx) => {
    await insertTombstone(tx, applicationId);
    // Waits for an upload that is being committed, whose file is found below.
    await abandonUploadTo(tx, accountId, applicationId);
    await endUploadsTo(tx, applicationId);
  });
  let fileCount = 0;
  // Until none is left: a batch may be smaller where others delete files as well.
  for (let deleted = await deleteBatch(ctx, applicationId); deleted > 0; deleted = await deleteBatch(ctx, applicationId)) {
    fileCount += deleted;
    onObjectsToRemove();
  }
  await completeCleanUp(ctx.db, applicationId);
  if (fileCount > 0) ctx.logger.info({ applicationId, fileCount }, 'files of a deleted application removed');
}

async function deleteBatch({ db }: CleanUpContext, applicationId: string): Promise<number> {
  return db.transaction().execute(async (tx) => {
    const files = await deleteFiles(tx, applicationId, { limit: BATCH_MAX });
    if (files.length === 0) return 0;
    const keys = files.map(({ objectId }) => objectKey(applicationId, objectId));
    await insertObjectDeletions(tx, keys);
    const chargedMib = files.reduce((sum, { byteSize }) => sum + chargeMib(byteSize), 0);
    await subtractUsage(tx, applicationId, { fileCount: files.length, chargedMib });
    const events = files.map(({ id: fileId, accountId, displayName }) => {
      const changes = { displayName, because: 'application.deleted' };
      return describeChange({ accountId, applicationId, fileId }, 'file.deleted', changes);
    });
    await recordAudit(tx, SERVICE_ORIGIN, ...events);
    return files.length;
  });
}

export const purgeTombstones = ({ db }: Pick<FilesContext, 'db'>, signal: AbortSignal) =>
  deleteTombstones(db, TOMBSTONE_MS, signal);
