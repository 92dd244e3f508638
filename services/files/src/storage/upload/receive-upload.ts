import type { Readable } from 'node:stream';
import { commonErrors, DomainError } from '@latchkey/kit/errors';
import type { FilesContext } from '../../context.ts';
import { errors } from '../../errors.ts';
import { objectKey } from '../object-store/object-store.ts';
import { hashTicket } from './begin-upload.ts';
import { commitUpload, type StoredUpload } from './commit-upload.ts';
import { giveUp } from './give-up.ts';
import { holdLease } from './lease.ts';
import { Overdue, unlessOverdue } from './overdue.ts';
import { readBody } from './read-body.ts';
import { type ReceivedBody, receiveBody } from './received-body.ts';
import { type ClaimedIntent, claimIntent } from './upload-intent.store.ts';

/** The bytes of a file, and what opens the way for them. */
export interface IncomingUpload {
  readonly ticket: string;
  readonly body: Readable;
  readonly requestId: string;
}

/**
 * Stores the bytes of an upload and makes the file, or leaves nothing (specification 4.2, decisions 7). The body is left open where it was
 * not read to its end.
 *
 * @throws `upload_ticket_invalid` for a ticket that was never issued, was used, or is too old; what {@link receiveBody} and
 *   {@link commitUpload} throw; `upload_timeout`; `upload_interrupted`; `dependency_unavailable` when the store fails,
 *   or the apps service can't be reached until the deadline
 */
export async function receiveUpload(ctx: FilesContext, upload: IncomingUpload): Promise<StoredUpload> {
  const intent = await claimIntent(ctx.db, hashTicket(upload.ticket), ctx.limits.uploadLeaseMs);
  if (!intent) throw errors.upload_ticket_invalid();
  const lease = holdLease(ctx, intent);
  let stored: StoredUpload | undefined;
  try {
    const received = await store(ctx, intent, upload.body, lease.signal);
    stored = { id: intent.id, byteSize: received.byteSize(), checksum: received.checksum() };
    const { requestId } = upload;
    await commitUpload(ctx, { intent, stored, head: received.head(), requestId, signal: lease.signal });
    return stored;
  } catch (err) {
    // The answer to a commit may be lost on its way.
    if ((await giveUp(ctx, intent, mayFinishLater(err))) === 'committed' && stored) return stored;
    throw err instanceof Overdue ? err.cause : err;
  } finally {
    lease.release();
  }
}

/** Whether the store may yet do what it was asked. */
function mayFinishLater(err: unknown): boolean {
  return err instanceof Overdue || (err instanceof DomainError && err.reason === 'dependency_unavailable');
}

async function store(ctx: FilesContext, intent: ClaimedIntent, body: Readable, signal: AbortSignal): Promise<ReceivedBody> {
  const received = receiveBody(readBody(body, signal), {
    byteSizeMax: ctx.limits.byteSizeMax,
    allowedBytes: intent.byteSizeMax,
    byteSize: intent.byteSize,
    expectedChecksum: intent.expectedChecksum,
  });
  try {
    const put = ctx.store.put(objectKey(intent.applicationId, intent.id), received.bytes, signal);
    await unlessOverdue(put, signal);
    return received;
  } catch (err) {
    if (err instanceof Overdue) throw err;
    const reason = received.failure() ?? (signal.aborted ? signal.reason : undefined);
    if (reason instanceof DomainError) throw reason;
    ctx.logger.error({ err, fileId: intent.id }, 'object not stored');
    throw commonErrors.dependency_unavailable();
  }
}
