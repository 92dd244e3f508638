import { originFrom } from '@latchkey/audit/actor';
import { resumeCall } from '@latchkey/audit/idempotency';
import { runTransaction } from '@latchkey/audit/transaction';
import { isUniqueViolation } from '@latchkey/kit/database/database';
import type { FilesContext } from '../../context.ts';
import { errors } from '../../errors.ts';
import { isDeleted } from '../application/deleted-application.store.ts';
import { requireOwned, waitUntilReachable } from '../application/owned-application.ts';
import { insertFile, recordFiles } from '../file/file.store.ts';
import type { UploadResponse } from './begin-upload.ts';
import { type ClaimedIntent, endIntent } from './upload-intent.store.ts';
import { addUsage, selectUsages } from './usage.store.ts';
import { chargeMib, checkFits, findDeleted, sumUsage } from './usage.ts';
import type { VerifiedBody } from './verified-body.ts';

const UNKNOWN_TYPE = 'application/octet-stream';

/**
 * Makes the file's row if everything that was checked before the bytes came still holds
 * (specification 4.2). Uploads of an account follow one another, as the transaction that
 * counts one also ends its intent. A restart of the apps service is waited for.
 */
export async function commitUpload(
  ctx: FilesContext,
  intent: ClaimedIntent,
  body: VerifiedBody,
  requestId: string,
  signal: AbortSignal,
): Promise<UploadResponse> {
  const { accountId, applicationId, displayName } = intent;
  const { byteSize, checksum } = body;
  const contentType = await sniffType(body.head);
  const findOwned = waitUntilReachable(ctx.findOwned, signal);
  await requireOwned(findOwned, { accountId, applicationId, requestId });
  const question = { accountId, requestId, usages: await selectUsages(ctx.db, accountId) };
  const deleted = await findDeleted({ ...ctx, findOwned }, question, byteSize);
  const { idempotencyId: callId, idempotencyFingerprint: fingerprint } = intent;
  const call = callId && fingerprint ? { id: callId, fingerprint } : undefined;
  const commit = () =>
    runTransaction(ctx.db, async (tx) => {
      // The row lock orders this and the deletion of the application, which abandons intents before
      // it deletes files: either it waits for this commit and then finds the file, or there is no
      // intent left to end.
      if (!(await endIntent(tx, intent.id))) {
        throw (await isDeleted(tx, applicationId)) ? errors.application_not_found() : errors.upload_interrupted();
      }
      const usages = await selectUsages(tx, accountId);
      checkFits(ctx.limits, sumUsage(usages, deleted), byteSize);
      await insertFile(tx, {
        id: intent.id,
        account_id: accountId,
        application_id: applicationId,
        display_name: displayName,
        byte_size: byteSize,
        checksum,
        content_type: contentType,
        created_at: ctx.clock(),
      }).catch((err: unknown) => {
        throw isUniqueViolation(err, 'file_name') ? errors.file_name_taken() : err;
      });
      await addUsage(tx, { applicationId, accountId, chargedMib: chargeMib(byteSize) });
      const changes = { displayName, byteSize, checksum: checksum.toString('hex') };
      const event = { accountId, applicationId, fileId: intent.id, action: 'file.uploaded', changes } as const;
      await recordFiles(tx, originFrom(intent.actor, requestId), event);
      return { id: intent.id, byteSize: BigInt(byteSize), checksum };
    });
  return resumeCall(call, ctx.resultKey, commit);
}

/** Never fails. The library, which takes 14 MiB, is loaded with the first upload. */
async function sniffType(head: Buffer): Promise<string> {
  const { fileTypeFromBuffer } = await import('file-type');
  const type = await fileTypeFromBuffer(head).catch(() => undefined);
  return type?.mime ?? UNKNOWN_TYPE;
}
