import type { Readable } from 'node:stream';
import { DomainError } from '@latchkey/kit/errors/errors';
import { within } from '@latchkey/kit/process/within';
import type { FilesContext } from '../../context.ts';
import { errors } from '../../errors.ts';
import { uploads, uploadsRunning } from '../../files-metrics.ts';
import { hasFile } from '../file/file.store.ts';
import { objectKey } from '../object-store/object-store.ts';
import { hashTicket } from './begin-upload.ts';
import { commitUpload, type StoredUpload } from './commit-upload.ts';
import { keepLease } from './lease.ts';
import { Overdue, putWithDeadline } from './put-with-deadline.ts';
import { runUploadCall } from './upload-call.ts';
import { abandonIntent, type ClaimedIntent, claimIntent, deleteIntent, postponeIntent } from './upload-intent.store.ts';
import { VerifiedBody } from './verified-body.ts';

/** Longest wait of a failed upload for its clean-up; the sweeper removes what takes longer. */
const CLEAN_UP_MS_MAX = 2_000;
/** When the sweeper removes again what a failed store may have finished late, in leases. */
const SECOND_REMOVAL_LEASES = 6;

export interface UploadResponse {
  readonly id: string;
  readonly byteSize: bigint;
  readonly checksum: Buffer;
}

export type ReceiveUpload = (ticket: string, body: Readable, requestId: string) => Promise<UploadResponse>;

export function createReceiveUpload(ctx: FilesContext): ReceiveUpload {
  let running = 0;
  uploadsRunning.watch(() => [[running]]);
  const facts = ({ id: fileId, byteSize }: StoredUpload) => ({ fileId, byteSize });
  const onEnd = (outcome: string) => uploads.add(1, outcome);
  return async (ticket, body, requestId) => {
    running += 1;
    try {
      const call = { name: 'upload', body, requestId, logger: ctx.logger, facts, onEnd } as const;
      const stored = await runUploadCall(call, () => receive(ctx, ticket, body, requestId));
      return { ...stored, byteSize: BigInt(stored.byteSize) };
    } finally {
      running -= 1;
    }
  };
}

/**
 * Stores the bytes of an upload and makes the file, or leaves nothing (specification 4.2, decisions
 * 7). Throws `upload_ticket_invalid` for a ticket that was never issued, was used, or is too old.
 */
async function receive(ctx: FilesContext, ticket: string, source: Readable, requestId: string): Promise<StoredUpload> {
  const intent = await claimIntent(ctx.db, hashTicket(ticket), ctx.limits.uploadLeaseMs);
  if (!intent) throw errors.upload_ticket_invalid();
  const lease = keepLease(ctx, intent);
  const { signal } = lease;
  const key = objectKey(intent.applicationId, intent.id);
  const { byteSize, expectedChecksum: checksum } = intent;
  const limits = [
    [ctx.limits.byteSizeMax, errors.file_too_large],
    [intent.byteSizeMax, errors.allowance_exceeded],
  ] as const;
  const body = new VerifiedBody(source, { limits, byteSize, checksum }, signal);
  let stored: StoredUpload | undefined;
  try {
    await putWithDeadline(ctx, { key, body, signal });
    stored = { id: intent.id, byteSize: body.byteSize, checksum: body.checksum };
    await commitUpload(ctx, { intent, stored, head: body.head, requestId, signal });
    return stored;
  } catch (err) {
    const mayFinishLater = err instanceof Overdue || (err instanceof DomainError && err.reason === 'dependency_unavailable');
    // The response to a commit may be lost.
    if ((await abandon(ctx, intent, mayFinishLater)) === 'committed' && stored) return stored;
    throw err instanceof Overdue ? err.cause : err;
  } finally {
    lease.release();
  }
}

/**
 * Frees the lease of a failed upload and removes what was stored. Returns `committed` where it did
 * not fail after all, and `unknown` where the database can't be queried.
 */
async function abandon(
  ctx: FilesContext,
  { id, applicationId }: ClaimedIntent,
  mayFinishLater: boolean,
): Promise<'committed' | 'abandoned' | 'unknown'> {
  try {
    // Waits for a commit that is still under way, so that its outcome is known after.
    await abandonIntent(ctx.db, id);
    if (await hasFile(ctx.db, id)) return 'committed';
  } catch (err) {
    ctx.logger.warn({ err, fileId: id }, 'failed upload is left to the sweeper');
    return 'unknown';
  }
  const cleanUp = async () => {
    await ctx.store.remove(objectKey(applicationId, id));
    if (mayFinishLater) await postponeIntent(ctx.db, id, ctx.limits.uploadLeaseMs * SECOND_REMOVAL_LEASES);
    else await deleteIntent(ctx.db, id);
  };
  const cleaned = cleanUp().catch((err: unknown) => {
    ctx.logger.warn({ err, fileId: id }, 'rest of a failed upload is left to the sweeper');
  });
  await within(CLEAN_UP_MS_MAX, cleaned);
  return 'abandoned';
}
