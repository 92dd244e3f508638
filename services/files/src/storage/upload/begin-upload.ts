import { hash, randomBytes } from 'node:crypto';
import { type Acting, formatActor, type Origin } from '@latchkey/audit/actor';
import { findResult, takeCall } from '@latchkey/audit/idempotency';
import { UPLOAD_METADATA_LENGTH_MAX } from '@latchkey/contract/resumable-upload';
import { commonErrors } from '@latchkey/kit/errors/errors';
import { newId } from '@latchkey/kit/validation/id';
import { hasLength } from '@latchkey/kit/validation/text';
import type { FilesContext } from '../../context.ts';
import { errors } from '../../proto-errors.ts';
import { type ApplicationRef, readOwned } from '../application/owned-application.ts';
import { isTaken, selectNameHolders, selectRecentUpload } from '../file/file.store.ts';
import { parseFileName } from '../file/file.ts';
import { abandonEnded, deleteUnclaimed, insertIntent, selectLease } from './upload-intent.store.ts';
import { selectCharges } from './usage.store.ts';
import { allowedBytes, chargeMib, checkSize, findDeleted, sumUsage } from './usage.ts';

export interface UploadResponse {
  readonly id: string;
  readonly byteSize: bigint;
  readonly checksum: Buffer;
}

const TICKET_BYTES = 32;
const CHECKSUM_BYTES = 32;

export type UploadDescription = ApplicationRef & {
  readonly fileName: string;
  readonly byteSize: number | undefined;
  /** Empty if it is unknown. */
  readonly expectedChecksum: Uint8Array;
  readonly replace: boolean;
  readonly metadata?: string;
};

/**
 * Checks whether a file may be uploaded now, and takes the account's lease
 * (specification 4.2).
 *
 * @returns the ticket that opens the data path once; or the stored file, where the same credential
 *   repeats an upload with the same checksum or idempotency key
 */
export async function beginUpload(ctx: Acting<FilesContext>, upload: UploadDescription) {
  const call = takeCall();
  const earlier = call && (await findResult<UploadResponse>(ctx.db, call));
  if (earlier) return { stored: earlier.value };
  const { accountId, applicationId, requestId, byteSize, replace } = upload;
  const { displayName, expectedChecksum } = parseDescription(upload);
  const [usages, holders] = await readOwned(ctx.findOwned, upload, () =>
    Promise.all([selectCharges(ctx.db, accountId), selectNameHolders(ctx.db, applicationId, displayName)]),
  );
  const { file: former } = holders;
  if (isTaken(holders)) {
    // A request without a body repeats nothing.
    const checksum = byteSize === 0 ? null : expectedChecksum;
    const stored = checksum && (await findRepeated(ctx.db, ctx.origin, { accountId, applicationId, displayName, checksum }));
    if (stored) return { stored };
    if (isTaken(holders, replace)) throw errors.file_name_taken();
  }
  await checkReplaceable(ctx, upload, former);
  const replacedMib = former ? chargeMib(former.byteSize) : 0;
  const byteSizeMin = Math.min(byteSize ?? 1, ctx.limits.byteSizeMax);
  const deleted = await findDeleted(ctx, { accountId, requestId, usages }, byteSizeMin, replacedMib);
  const usage = sumUsage(usages, deleted);
  checkSize(ctx.limits, usage, byteSize ?? 1, replacedMib);
  const id = newId();
  const ticket = randomBytes(TICKET_BYTES).toString('base64url');
  await takeLease(ctx, {
    ...{ id, accountId, applicationId, displayName, expectedChecksum },
    byteSize: byteSize ?? null,
    byteSizeMax: allowedBytes(ctx.limits, usage, replacedMib),
    isReplacement: replace,
    ticketHash: hashTicket(ticket),
    actor: formatActor(ctx.origin) ?? null,
    idempotencyId: call?.id ?? null,
    idempotencyFingerprint: call?.fingerprint ?? null,
  });
  return { ticket, fileId: former?.id ?? id };
}

/** Throws `file_in_use` before any bytes come; the commit checks it again. */
export async function checkReplaceable(ctx: FilesContext, ref: ApplicationRef, file: { readonly id: string } | undefined) {
  if (file && (await ctx.detachFile({ ...ref, fileId: file.id }, 'renamed'))) throw errors.file_in_use();
}

/** The stored file of an upload that the same credential repeats within 10 minutes. */
export async function findRepeated(
  db: FilesContext['db'],
  { credentialId }: Origin,
  upload: Parameters<typeof selectRecentUpload>[1],
): Promise<UploadResponse | undefined> {
  const stored = credentialId && (await selectRecentUpload(db, upload, credentialId));
  return stored ? { ...stored, byteSize: BigInt(stored.byteSize) } : undefined;
}

/** Returns an unused ticket, so that the account may upload again immediately. */
export const abandonTicket = ({ db }: FilesContext, ticket: string) => deleteUnclaimed(db, hashTicket(ticket));

export const hashTicket = (ticket: string): Buffer => hash('sha256', ticket, 'buffer');

/** Throws `file_name_invalid`, `upload_malformed`. */
export function parseDescription({ fileName, byteSize = 0, expectedChecksum, metadata = '' }: UploadDescription) {
  const displayName = parseFileName(fileName);
  const isSizeValid = Number.isSafeInteger(byteSize) && byteSize >= 0;
  const isChecksumValid = [0, CHECKSUM_BYTES].includes(expectedChecksum.byteLength);
  const isMetadataValid = hasLength(metadata, 0, UPLOAD_METADATA_LENGTH_MAX);
  if (!isSizeValid || !isChecksumValid || !isMetadataValid) throw errors.upload_malformed();
  return { displayName, expectedChecksum: expectedChecksum.byteLength > 0 ? Buffer.from(expectedChecksum) : null };
}

async function takeLease(ctx: FilesContext, intent: Parameters<typeof insertIntent>[1]): Promise<void> {
  const { accountId, idempotencyId } = intent;
  if (await insertIntent(ctx.db, intent, ctx.limits)) return;
  const freed = await abandonEnded(ctx.db, accountId, idempotencyId);
  if (freed && (await insertIntent(ctx.db, intent, ctx.limits))) return;
  const lease = await selectLease(ctx.db, accountId);
  if (idempotencyId && lease?.idempotencyId?.equals(idempotencyId)) throw commonErrors.idempotency_in_progress();
  const retryMs = (lease?.seconds ?? 1) * 1_000;
  throw errors.upload_under_way({ policy: 'uploads-at-once', limit: 1, windowMs: ctx.limits.uploadDeadlineMs, retryMs });
}
