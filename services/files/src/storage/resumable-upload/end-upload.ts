import { addChange } from '@latchkey/audit/announce';
import { runTransaction } from '@latchkey/audit/transaction';
import type { FilesContext } from '../../context.ts';
import { removeObjectsSoon } from '../object-deletion/object-deletion.ts';
import { findUpload } from './find-upload.ts';
import * as rows from './resumable-upload.store.ts';

const SWEEP_MAX = 1_000;

/**
 * Ends an unfinished upload and removes what it stored; the file of a finished one stays. Returns
 * its application. Throws `upload_not_found`, `upload_expired`.
 */
export async function endUpload(ctx: FilesContext, accountText: string, idText: string) {
  const { applicationId, keys } = await runTransaction(ctx.db, async (tx) => {
    const { accountId, applicationId, id, state } = await findUpload({ ...ctx, db: tx }, accountText, idText);
    if (state !== 'open') return { applicationId, keys: [] };
    addChange(tx, accountId, { kind: 'file', applicationId });
    return { applicationId, keys: await rows.endUploads(tx, { accountId, id }) };
  });
  await removeObjectsSoon(ctx, keys);
  return { applicationId };
}

/** Ends expired uploads, and forgets those of a day ago. The sweeper removes their objects. */
export async function sweepUploads({ db }: Pick<FilesContext, 'db'>): Promise<void> {
  await rows.endUploads(db, { expiredMax: SWEEP_MAX });
  await rows.deleteForgotten(db, SWEEP_MAX);
}
