import { addChange } from '@latchkey/audit/announce';
import { runTransaction } from '@latchkey/audit/transaction';
import { parseId } from '@latchkey/kit/validation/id';
import type { FilesContext } from '../../context.ts';
import { errors } from '../../errors.ts';
import { removeObjectsSoon } from '../object-deletion/object-deletion.ts';
import * as rows from './resumable-upload.store.ts';

export type ResumableUpload = rows.ResumableUpload;

const SWEEP_MAX = 1_000;

/** An upload, finished or not. Throws `upload_not_found`, `upload_expired`. */
export async function findUpload(ctx: FilesContext, accountText: string, idText: string): Promise<rows.ResumableUpload> {
  const [accountId, id] = [parseId(accountText), parseId(idText)];
  const upload = accountId && id ? await rows.selectUpload(ctx.db, accountId, id) : undefined;
  if (!upload) throw errors.upload_not_found();
  if (upload.state === 'ended' || upload.isExpired) throw errors.upload_expired();
  return upload;
}

/** The unfinished uploads of an account, oldest first. */
export async function listUploads(ctx: FilesContext, accountText: string): Promise<rows.ResumableUpload[]> {
  const accountId = parseId(accountText);
  return accountId ? rows.selectUnfinished(ctx.db, accountId) : [];
}

/**
 * Ends an unfinished upload and removes what it stored; a finished one keeps its file. Returns its
 * application. Throws `upload_not_found`, `upload_expired`.
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

/** Ends expired uploads, and forgets those that ended a day ago. The sweeper removes their objects. */
export async function sweepUploads({ db }: Pick<FilesContext, 'db'>): Promise<void> {
  await rows.endUploads(db, { expiredMax: SWEEP_MAX });
  await rows.deleteForgotten(db, SWEEP_MAX);
}
