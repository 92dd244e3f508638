import { originFrom } from '@latchkey/audit/actor';
import { type CallIdentity, resumeCall } from '@latchkey/audit/idempotency';
import { recordAudit } from '@latchkey/audit/record';
import { runTransaction } from '@latchkey/audit/transaction';
import { isUniqueViolation } from '@latchkey/kit/database/database';
import type { FilesContext } from '../../context.ts';
import type { Db } from '../../db/schema.ts';
import { errors } from '../../proto-errors.ts';
import { requireOwned, waitUntilReachable } from '../application/owned-application.ts';
import { insertFile, lockNamedFile, lockRenames, selectNameHolders, updateContent } from '../file/file.store.ts';
import { describeChange } from '../file/file.ts';
import { insertObjectDeletions } from '../object-deletion/object-deletion.store.ts';
import { removeObjectsSoon } from '../object-deletion/object-deletion.ts';
import { OWN_REMOVAL_MS } from '../object-deletion/removal-delay.ts';
import { objectKey } from '../object-store/object-store.ts';
import { clearFileId } from '../resumable-upload/resumable-upload.store.ts';
import type { UploadResponse } from './begin-upload.ts';
import { addUsage, selectCharges, subtractUsage } from './usage.store.ts';
import { chargeMib, checkFits, findDeleted, sumUsage } from './usage.ts';

const UNKNOWN_TYPE = 'application/octet-stream';
const PNG_SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');

/** An upload whose bytes are stored under its id. */
interface StoredUpload {
  readonly id: string;
  readonly accountId: string;
  readonly applicationId: string;
  readonly displayName: string;
  /** True if it replaces the file that has its name by now. */
  readonly isReplacement: boolean;
  readonly actor: string | null | undefined;
  readonly call?: CallIdentity | undefined;
  /** The whole, and its first bytes. */
  readonly content: { readonly byteSize: number; readonly checksum: Buffer; readonly head: Buffer };
  /** Ends the upload and locks the account's usage. Throws when it was abandoned. */
  end(tx: Db): Promise<void>;
}

/**
 * Makes the file's row, or gives the replaced file its new content, if everything that was checked
 * before the bytes came still holds. The lock of the usage serialises the commits of an account. A
 * restart of the apps service is waited for. `isOwn` is false for the result of another upload with
 * the idempotency key, which leaves this one as it was.
 */
export async function commitUpload(
  ctx: FilesContext,
  upload: StoredUpload,
  requestId: string,
  signal: AbortSignal,
): Promise<{ readonly stored: UploadResponse; readonly isOwn: boolean }> {
  const { id, accountId, applicationId, displayName, isReplacement } = upload;
  const { byteSize, checksum, head } = upload.content;
  const content = { byteSize, checksum, contentType: await sniffType(head) };
  let own: UploadResponse | undefined;
  let replaced: { readonly by: UploadResponse; readonly key: string } | undefined;
  const commit = async (tx: Db, deleted: ReadonlySet<string>) => {
    await upload.end(tx);
    // No rename gives the file another name until the end of the transaction.
    if (isReplacement) await lockRenames(tx, applicationId);
    const former = isReplacement ? await lockNamedFile(tx, applicationId, displayName) : undefined;
    if (isReplacement && !former) await clearFileId(tx, id);
    const replacedMib = former ? chargeMib(former.byteSize) : 0;
    checkFits(ctx.limits, sumUsage(await selectCharges(tx, accountId), deleted), byteSize, replacedMib);
    if ((await selectNameHolders(tx, applicationId, displayName)).isReserved) throw errors.file_name_taken();
    const stored = { id: former?.id ?? id, byteSize: BigInt(byteSize), checksum };
    const file = { accountId, applicationId, fileId: stored.id };
    if (former) {
      // Under the lock of the row, so that no release with the file is published meanwhile.
      if (await ctx.detachFile({ ...file, requestId }, 'replaced')) throw errors.file_in_use();
      await updateContent(tx, { ...content, id: former.id, objectId: id, createdAt: ctx.clock() });
      await subtractUsage(tx, applicationId, { fileCount: 1, chargedMib: replacedMib });
      replaced = { by: stored, key: objectKey(applicationId, former.objectId) };
      await insertObjectDeletions(tx, [replaced.key], OWN_REMOVAL_MS);
    } else {
      const created = { ...content, id, applicationId, displayName, createdAt: ctx.clock() };
      await insertFile(tx, accountId, created).catch((err: unknown) => {
        throw isUniqueViolation(err, 'file_name') ? errors.file_name_taken() : err;
      });
    }
    await addUsage(tx, { applicationId, accountId, chargedMib: chargeMib(byteSize) });
    const previous = former && { previousChecksum: former.checksum.toString('hex') };
    const changes = { displayName, byteSize, checksum: checksum.toString('hex'), ...previous };
    const event = describeChange(file, former ? 'file.replaced' : 'file.uploaded', changes);
    await recordAudit(tx, originFrom(upload.actor, requestId), event);
    own = stored;
    return stored;
  };
  const stored = await waitUntilReachable(async () => {
    await requireOwned(ctx.findOwned, { accountId, applicationId, requestId });
    const question = { accountId, requestId, usages: await selectCharges(ctx.db, accountId) };
    const deleted = await findDeleted(ctx, question, byteSize);
    return resumeCall(upload.call, ctx.resultKey, () => runTransaction(ctx.db, (tx) => commit(tx, deleted)));
  }, signal);
  const isOwn = own === stored;
  if (isOwn) ctx.usage.add(applicationId, 'uploads');
  if (replaced?.by === stored) await removeObjectsSoon(ctx, [replaced.key]);
  return { stored, isOwn };
}

/** Never fails. The library, which takes 14 MiB, is loaded with the first upload. */
async function sniffType(head: Buffer): Promise<string> {
  const { fileTypeFromBuffer } = await import('file-type');
  const type = await fileTypeFromBuffer(head).catch(() => undefined);
  // The library reports no PNG without a valid first chunk.
  const isPng = head.subarray(0, PNG_SIGNATURE.length).equals(PNG_SIGNATURE);
  return type?.mime ?? (isPng ? 'image/png' : UNKNOWN_TYPE);
}
