import type { Acting, Origin } from '@latchkey/audit/actor';
import { runTransaction } from '@latchkey/audit/transaction';
import type { Kysely } from 'kysely';
import type { FilesContext } from '../../context.ts';
import type { FilesDatabase } from '../../db/schema.ts';
import { errors } from '../../errors.ts';
import type { ApplicationRef } from '../application/owned-application.ts';
import { insertObjectDeletions, OWN_REMOVAL_MS } from '../object-deletion/object-deletion.store.ts';
import { removeObjectsSoon } from '../object-deletion/object-deletion.ts';
import { objectKey } from '../object-store/object-store.ts';
import { subtractUsage } from '../upload/usage.store.ts';
import { chargeMib } from '../upload/usage.ts';
import { deleteFiles, recordFiles } from './file.store.ts';
import { parseFileRef } from './file.ts';

/**
 * Deletes a file. The removal of its object is scheduled in the same transaction, so that no crash
 * can leave it; a store that fails or is slow changes nothing for the caller. Throws
 * `application_not_found`, `file_not_found`, `file_in_use`.
 */
export async function deleteFile(ctx: Acting<FilesContext>, given: ApplicationRef, fileIdText: string): Promise<void> {
  const ref = await parseFileRef(ctx, given, fileIdText);
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
  tx: Kysely<FilesDatabase>,
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
  await recordFiles(tx, origin, { accountId, applicationId, fileId, action: 'file.deleted', changes });
  await insertObjectDeletions(tx, [key], OWN_REMOVAL_MS);
  return key;
}
