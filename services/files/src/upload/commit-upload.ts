import { originFrom } from '@latchkey/kit/audit/actor';
import { isUniqueViolation } from '@latchkey/kit/database/database';
import type { FilesContext } from '../context.ts';
import { errors } from '../errors.ts';
import { recordFiles } from '../file/audit.ts';
import { chargeMib } from '../file/charge.ts';
import { holdApplication, insertFile, isDeleted } from './commit-upload.store.ts';
import { type ClaimedIntent, endIntent } from './upload-intent.store.ts';
import { addUsage, selectUsages } from './usage.store.ts';
import { checkFits, findDeleted, sumUsage } from './usage.ts';

/** What the sender of an upload is told. */
export interface StoredUpload {
  readonly id: string;
  readonly byteSize: number;
  /** SHA-256, 32 bytes. */
  readonly checksum: Buffer;
}

/** An object that is stored and has no row yet. */
export interface UncommittedUpload {
  readonly intent: ClaimedIntent;
  readonly stored: StoredUpload;
  /** First bytes of it. */
  readonly head: Buffer;
  readonly requestId: string;
}

const UNKNOWN_TYPE = 'application/octet-stream';

/**
 * Makes the file's row, if everything that was checked before the bytes came still holds (specification 4.2 rule 4). Uploads of an account
 * follow one another, as the intent of one is ended in the transaction that counts it.
 *
 * @throws `application_not_found`, `upload_interrupted`, `allowance_exceeded`, `file_count_exceeded`, `file_name_taken`
 */
export async function commitUpload(ctx: FilesContext, { intent, stored, head, requestId }: UncommittedUpload): Promise<void> {
  const { accountId, applicationId } = intent;
  const contentType = await tellType(head);
  const owned = await ctx.findOwned(accountId, [applicationId], requestId);
  if (!owned.has(applicationId)) throw errors.application_not_found();
  const question = { accountId, requestId, usages: await selectUsages(ctx.db, accountId) };
  const deleted = await findDeleted(ctx, question, stored.byteSize);
  await ctx.db.transaction().execute(async (tx) => {
    // Before the intent, as the clean-up of a deleted application takes them in this order.
    await holdApplication(tx, applicationId);
    if (await isDeleted(tx, applicationId)) throw errors.application_not_found();
    if (!(await endIntent(tx, intent.id))) throw errors.upload_interrupted();
    const usages = await selectUsages(tx, accountId);
    checkFits(ctx.limits, sumUsage(usages.filter((usage) => !deleted.has(usage.applicationId))), stored.byteSize);
    await insertFile(tx, {
      id: intent.id,
      account_id: accountId,
      application_id: applicationId,
      display_name: intent.displayName,
      byte_size: stored.byteSize,
      checksum: stored.checksum,
      content_type: contentType,
      created_at: ctx.clock(),
    }).catch((err: unknown) => {
      throw isUniqueViolation(err, 'file_name') ? errors.file_name_taken() : err;
    });
    await addUsage(tx, { applicationId, accountId, chargedMib: chargeMib(stored.byteSize) });
    const changes = { displayName: intent.displayName, byteSize: stored.byteSize, checksum: stored.checksum.toString('hex') };
    const event = { accountId, applicationId, fileId: intent.id, action: 'file.uploaded', changes } as const;
    await recordFiles(tx, originFrom(intent.actor, requestId), event);
  });
}

/** What the first bytes look like is not worth failing for. The library, which takes 14 MiB, is loaded with the first upload. */
async function tellType(head: Buffer): Promise<string> {
  const { fileTypeFromBuffer } = await import('file-type');
  const type = await fileTypeFromBuffer(head).catch(() => undefined);
  return type?.mime ?? UNKNOWN_TYPE;
}
