import type { Acting, Origin } from '@latchkey/audit/actor';
import { type Changes, recordAudit } from '@latchkey/audit/record';
import { runStatement, runTransaction } from '@latchkey/audit/transaction';
import type { AuditAction } from '@latchkey/contract/audit-actions';
import { DOWNLOAD_URL_LIFETIME_S } from '@latchkey/contract/download-url';
import { isFileName } from '@latchkey/contract/file-name';
import { withoutInvisible } from '@latchkey/contract/invisible';
import { isUniqueViolation } from '@latchkey/kit/database/database';
import { toId } from '@latchkey/kit/validation/id';
import type { FilesContext } from '../../context.ts';
import type { Db } from '../../db/schema.ts';
import { errors } from '../../proto-errors.ts';
import { type ApplicationRef, readOwned, requireOwned } from '../application/owned-application.ts';
import { insertObjectDeletions } from '../object-deletion/object-deletion.store.ts';
import { removeObjectsSoon } from '../object-deletion/object-deletion.ts';
import { OWN_REMOVAL_MS } from '../object-deletion/removal-delay.ts';
import { objectKey } from '../object-store/object-store.ts';
import { subtractUsage } from '../upload/usage.store.ts';
import { chargeMib } from '../upload/usage.ts';
import {
  countDownloadUrl,
  deleteFiles,
  isTaken,
  lockRenames,
  selectFile,
  selectMetadata,
  selectNameHolders,
  updateName,
} from './file.store.ts';

/** The name in stored form (specification 2.5). Throws `file_name_invalid`. */
export function parseFileName(text: string): string {
  const name = withoutInvisible(text);
  if (!isFileName(name)) throw errors.file_name_invalid();
  return name;
}

/** The entry in the audit log of a change. */
export function describeChange(
  file: Omit<ApplicationRef, 'requestId'> & { fileId: string },
  action: AuditAction,
  changes: Changes,
) {
  const { accountId, applicationId, fileId } = file;
  return { accountId, applicationId, action, changes, subject: { kind: 'file' as const, id: fileId } };
}

/** Throws `file_name_invalid`, `application_not_found`, `file_name_taken`. */
export async function checkFileName(ctx: FilesContext, ref: ApplicationRef, nameText: string): Promise<void> {
  const name = parseFileName(nameText);
  await runStatement(ctx.db, async (db) => {
    const holders = await readOwned(ctx.findOwned, ref, () => selectNameHolders(db, ref.applicationId, name));
    if (isTaken(holders)) throw errors.file_name_taken();
  });
}

export const getFilesMetadata = (ctx: FilesContext, ref: ApplicationRef) =>
  readOwned(ctx.findOwned, ref, () => selectMetadata(ctx.pool, ref.applicationId));

/**
 * The file that a caller named, once the account is known to own its application; it may not exist.
 * Throws `application_not_found`.
 */
export async function requireFileRef(ctx: FilesContext, ref: ApplicationRef, fileIdText: string) {
  await requireOwned(ctx.findOwned, ref);
  return { ...ref, fileId: toId(fileIdText) };
}

/**
 * A rename to the present name succeeds. Throws `file_name_invalid`, `application_not_found`,
 * `file_not_found`, `file_name_taken`, `file_in_use`.
 */
export async function renameFile(
  ctx: Acting<FilesContext>,
  given: ApplicationRef,
  fileIdText: string,
  nameText: string,
): Promise<void> {
  const displayName = parseFileName(nameText);
  const ref = await requireFileRef(ctx, given, fileIdText);
  await runTransaction(ctx.db, async (tx) => {
    await lockRenames(tx, ref.applicationId);
    const previous = await updateName(tx, ref, displayName).catch((err: unknown) => {
      throw isUniqueViolation(err, 'file_name') ? errors.file_name_taken() : err;
    });
    if (previous === undefined) throw errors.file_not_found();
    if (previous === displayName) return;
    const { isReserved } = await selectNameHolders(tx, ref.applicationId, displayName);
    if (isReserved) throw errors.file_name_taken();
    if (await ctx.detachFile(ref, 'renamed')) throw errors.file_in_use();
    await recordAudit(tx, ctx.origin, describeChange(ref, 'file.renamed', { displayName, previous }));
  });
}

/**
 * Deletes a file. The removal of its object is scheduled in the same transaction, so that no crash
 * can leave it; a store that fails or is slow changes nothing for the caller. Throws
 * `application_not_found`, `file_not_found`, `file_in_use`.
 */
export async function deleteFile(ctx: Acting<FilesContext>, given: ApplicationRef, fileIdText: string): Promise<void> {
  const ref = await requireFileRef(ctx, given, fileIdText);
  const key = await runTransaction(ctx.db, async (tx) => {
    const key = await deleteFileRow(tx, ref, { origin: ctx.origin });
    if (key === undefined) throw errors.file_not_found();
    // Under the lock of the row, so that no release with the file is published meanwhile.
    if (await ctx.detachFile(ref, 'deleted')) throw errors.file_in_use();
    return key;
  });
  await removeObjectsSoon(ctx, [key]);
}

/**
 * Deletes a file's row, usage and object. Returns the key of the object; undefined when the
 * application has no such file, or the file has another object than the given one.
 */
export async function deleteFileRow(
  tx: Db,
  { applicationId, ...which }: { readonly applicationId: string; readonly fileId: string; readonly objectId?: string },
  { origin, because }: { readonly origin: Origin; readonly because?: string },
): Promise<string | undefined> {
  // The file first and then the counter, as uploads do, or the two could deadlock.
  const [file] = await deleteFiles(tx, applicationId, which);
  if (!file) return undefined;
  await subtractUsage(tx, applicationId, { fileCount: 1, chargedMib: chargeMib(file.byteSize) });
  const { id: fileId, accountId, displayName } = file;
  const key = objectKey(applicationId, file.objectId);
  const changes = { displayName, ...(because && { because }) };
  await recordAudit(tx, origin, describeChange({ accountId, applicationId, fileId }, 'file.deleted', changes));
  await insertObjectDeletions(tx, [key], OWN_REMOVAL_MS);
  return key;
}

/**
 * Creates and counts a URL of a file's bytes (specification 4.4): the store's own where it serves
 * its objects, else one of this service. It is of the present content, so that no download mixes
 * two. Throws `lifetime_invalid`, `application_not_found`,
 * `file_not_found`.
 */
export async function createDownloadUrl(
  ctx: FilesContext,
  given: ApplicationRef,
  fileIdText: string,
  lifetimeSeconds: number,
): Promise<{ url: string; expiresAt: Date }> {
  if (lifetimeSeconds < 0 || lifetimeSeconds > DOWNLOAD_URL_LIFETIME_S.max) throw errors.lifetime_invalid();
  const lifetime = lifetimeSeconds || DOWNLOAD_URL_LIFETIME_S.default;
  const { applicationId, fileId } = await requireFileRef(ctx, given, fileIdText);
  return runStatement(ctx.db, async (db) => {
    const file = await selectFile(ctx.pool, fileId);
    if (file?.applicationId !== applicationId) throw errors.file_not_found();
    const now = ctx.clock();
    const expiresAt = new Date(now.getTime() + lifetime * 1_000);
    const description = { fileName: file.displayName, contentType: file.contentType, lifetimeSeconds: lifetime };
    const storeUrl = await ctx.store.createDownloadUrl(objectKey(applicationId, file.objectId), description);
    const url = storeUrl ?? ctx.downloadUrls.create(file.objectId, expiresAt);
    // Counted last, so that only URLs that callers got are counted.
    if (!(await countDownloadUrl(db, fileId, now))) throw errors.file_not_found();
    // Downloads by the store's own URLs bypass this service, so they are counted here.
    if (storeUrl !== undefined) ctx.usage.add(applicationId, 'downloads');
    return { url, expiresAt };
  });
}
