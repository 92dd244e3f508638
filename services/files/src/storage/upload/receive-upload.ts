import type { Readable } from 'node:stream';
import { originFrom } from '@latchkey/audit/actor';
import { within } from '@latchkey/kit/concurrency/within';
import { DomainError } from '@latchkey/kit/errors/errors';
import { deleteInBatches } from '@latchkey/kit/sweeper/sweeper';
import type { FilesContext } from '../../context.ts';
import { sweepRemoved, uploads, uploadsRunning } from '../../files-metrics.ts';
import { errors } from '../../proto-errors.ts';
import { isDeleted } from '../application/deleted-application.store.ts';
import { removeObjects } from '../object-deletion/object-deletion.ts';
import { LATE_WRITE_MS, OWN_REMOVAL_MS } from '../object-deletion/removal-delay.ts';
import { objectKey } from '../object-store/object-store.ts';
import { findRepeated, hashTicket, type UploadResponse } from './begin-upload.ts';
import { commitUpload } from './commit-upload.ts';
import { keepLease, Overdue, observeBodies, putWithDeadline } from './upload-call.ts';
import { abandonExpired, abandonIntent, type ClaimedIntent, claimIntent, endIntent, renewLease } from './upload-intent.store.ts';
import { verifyBody } from './verified-body.ts';

/** Longest wait of a failed upload for its clean-up; the sweeper removes what takes longer. */
const CLEAN_UP_MS_MAX = 2_000;
const EXPIRED_MAX = 500;

interface TicketBody {
  readonly ticket: string;
  readonly body: Readable;
  readonly requestId: string;
}

export function createReceiveUpload(ctx: FilesContext) {
  let running = 0;
  uploadsRunning.watch(() => [[running]]);
  const toFacts = ({ id, byteSize }: UploadResponse) => ({ fileId: id, byteSize: Number(byteSize) });
  return observeBodies({ name: 'upload', logger: ctx.logger, toFacts, outcomes: uploads }, (upload: TicketBody) => {
    running += 1;
    return receive(ctx, upload).finally(() => {
      running -= 1;
    });
  });
}

/**
 * Stores the bytes of an upload and makes the file, or leaves nothing (specification 4.2). Throws
 * `upload_ticket_invalid` for a ticket that was never issued, was used, or is too old, and
 * `outcome_unknown` where the file may be stored.
 */
async function receive(ctx: FilesContext, { ticket, body: source, requestId }: TicketBody): Promise<UploadResponse> {
  const intent = await claimIntent(ctx.db, hashTicket(ticket), ctx.limits.uploadLeaseMs, ctx.processLock.id);
  if (!intent) throw errors.upload_ticket_invalid();
  const { id, applicationId, byteSize, expectedChecksum: checksum } = intent;
  const { signal, release } = keepIntent(ctx, intent);
  const limits = [
    [ctx.limits.byteSizeMax, errors.file_too_large],
    [intent.byteSizeMax, errors.allowance_exceeded],
  ] as const;
  const origin = originFrom(intent.actor, requestId);
  const body = verifyBody(source, { limits, byteSize, checksum }, signal);
  try {
    await putWithDeadline(ctx, { key: objectKey(applicationId, id), body, signal });
    // The row lock orders this and the deletion of the application, which abandons uploads before
    // it deletes files: either it waits for this commit and then finds the file, or there is no
    // upload left to end.
    const end = async (tx: typeof ctx.db) => {
      if (!(await endIntent(tx, id))) throw await explainLoss(tx, intent);
    };
    const upload = { ...intent, content: body, call: toCall(intent), end };
    const { stored, isOwn } = await commitUpload(ctx, upload, requestId, signal);
    if (!isOwn) await abandon(ctx, intent, false);
    return stored;
  } catch (err) {
    const reason = err instanceof DomainError ? err.reason : undefined;
    // Committed or not, the intent is gone or its lease expires: the sweeper removes what is left.
    if (reason === 'outcome_unknown') throw err;
    await abandon(ctx, intent, err instanceof Overdue || reason === 'dependency_unavailable');
    // The upload that this one repeats was committed meanwhile.
    const stored = reason === 'file_name_taken' && checksum && (await findRepeated(ctx.db, origin, { ...intent, checksum }));
    if (stored) return stored;
    throw err instanceof Overdue ? err.cause : err;
  } finally {
    release();
  }
}

function toCall({ idempotencyId: id, idempotencyFingerprint: fingerprint }: ClaimedIntent) {
  return id && fingerprint ? { id, fingerprint } : undefined;
}

/** Renews the lease of an upload until it is released or its deadline, when the signal aborts. */
function keepIntent({ db, limits, logger }: FilesContext, intent: ClaimedIntent) {
  return keepLease(logger, {
    leaseMs: limits.uploadLeaseMs,
    deadlineMs: intent.remainingMs,
    renew: () => renewLease(db, intent.id, limits.uploadLeaseMs),
    explainLoss: () => explainLoss(db, intent),
    onDeadline: (abort) => abort(errors.upload_timeout()),
  });
}

const explainLoss = async (db: FilesContext['db'], { applicationId }: ClaimedIntent) =>
  (await isDeleted(db, applicationId)) ? errors.application_not_found() : errors.upload_interrupted();

/** Frees the lease of a failed upload and removes its object, or leaves that to the sweeper. */
async function abandon(ctx: FilesContext, { id, applicationId }: ClaimedIntent, mayFinishLater: boolean): Promise<void> {
  const key = objectKey(applicationId, id);
  try {
    await abandonIntent(ctx.db, id, mayFinishLater ? LATE_WRITE_MS : OWN_REMOVAL_MS);
  } catch (err) {
    ctx.logger.warn({ err, fileId: id }, 'failed upload is left to the sweeper');
    return;
  }
  // The sweeper removes once more what a store writes later.
  await within(CLEAN_UP_MS_MAX, mayFinishLater ? ctx.store.remove(key) : removeObjects(ctx, [key]));
}

/** Abandons the uploads whose process has ended or hangs. */
export const sweepAbandonedUploads = ({ db }: Pick<FilesContext, 'db'>, signal: AbortSignal) =>
  deleteInBatches(EXPIRED_MAX, signal, async (limit) => {
    const abandoned = await abandonExpired(db, limit);
    sweepRemoved.add(abandoned, 'abandoned_upload');
    return abandoned;
  });
