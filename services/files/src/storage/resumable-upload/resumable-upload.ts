import { addChange } from '@latchkey/audit/announce';
import { addCommitProof, runTransaction } from '@latchkey/audit/transaction';
import { UNFINISHED_UPLOADS_MAX } from '@latchkey/contract/resumable-upload';
import { newId, toId } from '@latchkey/kit/validation/id';
import type { FilesContext } from '../../context.ts';
import { errors } from '../../proto-errors.ts';
import { isDeleted } from '../application/deleted-application.store.ts';
import { readOwned } from '../application/owned-application.ts';
import { isTaken, lockRenames, selectNameHolders } from '../file/file.store.ts';
import { removeObjectsSoon } from '../object-deletion/object-deletion.ts';
import { checkReplaceable, parseDescription, type UploadDescription } from '../upload/begin-upload.ts';
import { lockUsage, selectCharges } from '../upload/usage.store.ts';
import { chargeMib, checkSize, findDeleted, sumUsage } from '../upload/usage.ts';
import * as rows from './resumable-upload.store.ts';

export type ResumableUpload = rows.ResumableUpload;

const SWEEP_MAX = 1_000;

/**
 * Creates a resumable upload, which reserves its name, its storage and one file until it ends; one
 * that replaces a file, the storage that the file grows by. Makes the checks of `beginUpload` in
 * the same order, then throws `too_many_uploads`.
 */
export async function createUpload(
  ctx: FilesContext,
  given: UploadDescription & { readonly byteSize: number; readonly metadata: string },
): Promise<ResumableUpload> {
  const { accountId, applicationId, requestId, byteSize } = given;
  const { displayName, expectedChecksum } = parseDescription(given);
  const usages = await readOwned(ctx.findOwned, given, () => selectCharges(ctx.db, accountId));
  if (given.replace) await checkReplaceable(ctx, given, (await selectNameHolders(ctx.db, applicationId, displayName)).file);
  const deleted = await findDeleted(ctx, { accountId, requestId, usages }, Math.min(byteSize, ctx.limits.byteSizeMax));
  return runTransaction(ctx.db, async (tx) => {
    // Other creations and commits of the account wait, and renames of the application.
    await lockUsage(tx, accountId);
    await lockRenames(tx, applicationId);
    await rows.endExpiredOf(tx, accountId);
    if (await isDeleted(tx, applicationId)) throw errors.application_not_found();
    const holders = await selectNameHolders(tx, applicationId, displayName);
    if (isTaken(holders, given.replace)) throw errors.file_name_taken();
    const { file: former } = holders;
    const replacedMib = former ? chargeMib(former.byteSize) : 0;
    checkSize(ctx.limits, sumUsage(await selectCharges(tx, accountId), deleted), byteSize, replacedMib);
    if ((await rows.selectUnfinished(tx, accountId)).length >= UNFINISHED_UPLOADS_MAX) throw errors.too_many_uploads();
    const { xid, ...upload } = await rows.insertUpload(tx, {
      id: newId(),
      accountId,
      applicationId,
      displayName,
      byteSize,
      chargedMib: Math.max(0, chargeMib(byteSize) - replacedMib),
      fileId: former?.id ?? null,
      metadata: given.metadata,
      expectedChecksum,
    });
    addCommitProof(tx, { table: 'resumable_upload', id: upload.id, xid });
    addChange(tx, accountId, { kind: 'file', applicationId });
    return upload;
  });
}

/** An upload, finished or not. Throws `upload_not_found`, `upload_expired`. */
export async function findUpload(ctx: FilesContext, accountText: string, idText: string): Promise<ResumableUpload> {
  const upload = await rows.selectUpload(ctx.db, toId(accountText), toId(idText));
  if (!upload) throw errors.upload_not_found();
  if (upload.state === 'ended' || upload.isExpired) throw errors.upload_expired();
  return upload;
}

/** The unfinished uploads of an account, oldest first. */
export const listUploads = (ctx: FilesContext, accountText: string) => rows.selectUnfinished(ctx.db, toId(accountText));

/**
 * Ends an unfinished upload and removes what it stored; the file of a finished one stays. Returns
 * its application. Throws `upload_not_found`, `upload_expired`.
 */
export async function endUpload(ctx: FilesContext, accountText: string, idText: string) {
  const { applicationId, keys } = await runTransaction(ctx.db, async (tx) => {
    const { accountId, applicationId, id, state } = await findUpload({ ...ctx, db: tx }, accountText, idText);
    if (state !== 'open') return { applicationId, keys: [] };
    addChange(tx, accountId, { kind: 'file', applicationId });
    return { applicationId, keys: await rows.endUnfinished(tx, accountId, id) };
  });
  await removeObjectsSoon(ctx, keys);
  return { applicationId };
}

/** Ends expired uploads, and forgets those of a day ago. The sweeper removes their objects. */
export async function sweepResumableUploads({ db }: Pick<FilesContext, 'db'>, signal: AbortSignal): Promise<void> {
  await rows.endExpired(db, SWEEP_MAX);
  await rows.deleteForgotten(db, signal);
}
