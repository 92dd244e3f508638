import { type CallIdentity, identifyCall, resumeCall } from '@latchkey/audit/idempotency';
import { runStatement } from '@latchkey/audit/transaction';
import { commonErrors } from '@latchkey/kit/errors/errors';
import { newId, toId } from '@latchkey/kit/validation/id';
import type { FilesContext } from '../../context.ts';
import { chunks, uploads } from '../../files-metrics.ts';
import { errors } from '../../proto-errors.ts';
import { isDeleted } from '../application/deleted-application.store.ts';
import { removeObjectsSoon } from '../object-deletion/object-deletion.ts';
import { digestObject } from '../object-store/digest-object.ts';
import { type Appended, LostBytesError, objectKey } from '../object-store/object-store.ts';
import { commitUpload } from '../upload/commit-upload.ts';
import { type AccountBody, keepLease, observeBodies, toDomainError } from '../upload/upload-call.ts';
import { lockUsage } from '../upload/usage.store.ts';
import { HEAD_BYTES } from '../upload/verified-body.ts';
import { type ChunkBody, createChunkBody } from './chunk-body.ts';
import * as rows from './resumable-upload.store.ts';
import { findUpload } from './resumable-upload.ts';

/**
 * Bytes of a chunk after which they are made durable and recorded, so a killed process loses fewer.
 * A multiple of the part size of S3: the remainder of a part is stored as its own object.
 */
const CHECKPOINT_BYTES = 10 * 1024 * 1024;

export interface Chunk extends AccountBody {
  readonly uploadId: string;
  readonly byteOffset: number;
}

export const createAppendUpload = (ctx: FilesContext) =>
  observeBodies(
    {
      name: 'chunk',
      logger: ctx.logger,
      toFacts: ({ id, byteOffset, state }) => ({ uploadId: id, byteOffset, state }),
      outcomes: chunks,
    },
    (chunk: Chunk) => append(ctx, chunk),
  );

/** A chunk whose upload is claimed. */
interface Run {
  readonly ctx: FilesContext;
  readonly upload: rows.ClaimedUpload;
  readonly key: string;
  readonly chunk: Chunk;
  readonly body: ChunkBody;
  readonly call: CallIdentity | undefined;
  /** Aborts where the claim is lost. */
  readonly signal: AbortSignal;
  /** A renewal would report the end of the upload by its own call as a lost claim. */
  stopRenewals(): void;
  /** True while the store may hold an object of the claim that is not recorded. */
  mayHaveObject: boolean;
}

/**
 * Appends a chunk to an upload at its offset. Bytes that arrive before the body fails are stored; a
 * chunk with a checksum is stored whole or not at all. With the last byte the file is committed; an
 * empty chunk repeats a commit that failed. Throws the errors of `AppendUploadResponse`.
 */
async function append(ctx: FilesContext, chunk: Chunk): Promise<rows.ResumableUpload> {
  const { byteOffset, byteSize = 0 } = chunk;
  const { db, logger } = ctx;
  const [accountId, id] = [toId(chunk.accountId), toId(chunk.uploadId)];
  const call = identifyCall(accountId, chunk.idempotency ?? {});
  const claimed = { accountId, id, byteOffset, claimId: newId(), callId: call?.id ?? null, processLock: ctx.processLock.id };
  const upload = await rows.claimUpload(db, claimed);
  if (!upload) return rejectUnclaimed(ctx, accountId, id, chunk, call);
  const body = createChunkBody(chunk.body, upload.byteSize - byteOffset, chunk.checksum);
  const { signal, release: stopRenewals } = keepLease(logger, {
    leaseMs: rows.CLAIM_MS,
    deadlineMs: ctx.limits.uploadDeadlineMs,
    renew: () => rows.renewClaim(db, upload),
    explainLoss: () => explainLoss(db, upload),
    onDeadline: () => body.stop(errors.upload_timeout()),
  });
  signal.addEventListener('abort', () => body.stop(signal.reason));
  const key = objectKey(upload.applicationId, id);
  const run: Run = { ctx, upload, key, chunk, body, call, signal, stopRenewals, mayHaveObject: false };
  try {
    if (byteOffset + byteSize > upload.byteSize) throw errors.chunk_too_long();
    const whole = await store(run);
    if (body.error) throw body.error;
    return await finish(run, whole);
  } catch (err) {
    signal.throwIfAborted();
    if (!(err instanceof LostBytesError)) throw err;
    logger.error({ err, uploadId: id }, 'the object store lost the bytes of an upload');
    await end(run);
    throw errors.upload_expired();
  } finally {
    stopRenewals();
    await rows
      .releaseClaim(db, upload, run.mayHaveObject)
      .catch((err: unknown) => logger.warn({ err, uploadId: id }, 'upload claim not released'));
  }
}

/** The response to a chunk that could not be claimed: a finished upload has nothing to append. */
async function rejectUnclaimed(
  ctx: FilesContext,
  accountId: string,
  id: string,
  { byteOffset, byteSize }: Chunk,
  call: CallIdentity | undefined,
): Promise<rows.ResumableUpload> {
  const upload = await findUpload(ctx, accountId, id);
  if (upload.byteOffset !== byteOffset) throw errors.offset_mismatch();
  if (upload.state !== 'stored')
    throw call && upload.callId?.equals(call.id) ? commonErrors.idempotency_in_progress() : errors.upload_locked();
  if (byteSize !== 0) throw errors.chunk_too_long();
  return upload;
}

/** Why a claim was lost: the upload or its application ended, or another process has the claim. */
async function explainLoss(db: FilesContext['db'], { accountId, id, applicationId }: rows.ClaimedUpload) {
  const now = await rows.selectUpload(db, accountId, id);
  if (now?.state === 'open' || now?.state === 'stored') return errors.upload_interrupted();
  return (await isDeleted(db, applicationId)) ? errors.application_not_found() : errors.upload_expired();
}

/**
 * Stores a body piece by piece. Each is recorded once it is durable; an atomic body is recorded
 * once, with the result of its call.
 */
async function store(run: Run): Promise<Appended> {
  const { ctx, upload, key, chunk, body, call, signal } = run;
  const isAtomic = chunk.checksum !== undefined || call !== undefined;
  let stored: Appended = { byteSize: upload.byteOffset, state: upload.storeState };
  // An empty chunk: the bytes may be an object by now.
  if (upload.byteOffset === upload.byteSize) return stored;
  for (let { isContested } = upload; !body.isEnded; isContested = false) {
    const piece = body.take(CHECKPOINT_BYTES - (stored.byteSize % CHECKPOINT_BYTES));
    run.mayHaveObject = true;
    const appended = await ctx.store
      .append(key, stored, piece, signal, { writerId: upload.claimId, isContested })
      .catch((err: unknown) => rejectStore(run, err, 'chunk not stored'));
    const isRecorded = isAtomic ? body.isEnded && !body.error : appended.byteSize > stored.byteSize;
    if (isRecorded) await resumeCall(call, ctx.resultKey, () => runStatement(ctx.db, (db) => record(db, upload, appended)));
    run.mayHaveObject = isAtomic && !isRecorded;
    stored = appended;
  }
  return stored;
}

function rejectStore({ ctx, key, signal }: Run, err: unknown, what: string): never {
  signal.throwIfAborted();
  if (err instanceof LostBytesError) throw err;
  ctx.logger.error({ err, key }, what);
  throw commonErrors.dependency_unavailable();
}

async function record(db: FilesContext['db'], upload: rows.ClaimedUpload, appended: Appended): Promise<rows.ResumableUpload> {
  const recorded = await rows.recordAppended(db, upload, appended);
  if (!recorded) throw await explainLoss(db, upload);
  return recorded;
}

/** Commits the file if all its bytes are stored, and returns the upload. */
async function finish(run: Run, whole: Appended): Promise<rows.ResumableUpload> {
  const { ctx, upload, chunk, signal } = run;
  const { id, accountId, expectedChecksum, fileId } = upload;
  if (whole.byteSize < upload.byteSize) return findUpload(ctx, accountId, id);
  try {
    const content = await publish(run, whole).catch((err: unknown) => rejectStore(run, err, 'upload not published'));
    if (expectedChecksum?.equals(content.checksum) === false) throw errors.upload_checksum_mismatch();
    const endUpload = async (tx: typeof ctx.db) => {
      // Before the row, as a creation holds the lock while it changes rows.
      await lockUsage(tx, accountId);
      if (!(await rows.finishUpload(tx, upload, content.checksum))) throw await explainLoss(tx, upload);
    };
    const stored = { ...upload, isReplacement: fileId !== null, actor: chunk.actor, content, end: endUpload };
    await commitUpload(ctx, stored, chunk.requestId, signal);
    uploads.add(1, 'stored');
  } catch (err) {
    const known = toDomainError(err);
    uploads.add(1, known?.reason ?? 'internal');
    // Others may pass: the bytes stay, and the commit is repeated.
    if (known && known.httpStatus < 500) await end(run);
    throw err;
  }
  return findUpload(ctx, accountId, id);
}

/** Makes an object of the bytes, and reads it back: no digest outlives a process (ADR 22). */
async function publish({ ctx, key, signal }: Run, whole: Appended) {
  await ctx.store.publish(key, whole);
  const head: Buffer[] = [];
  let headBytes = 0;
  const content = await digestObject(ctx.store, key, signal, (chunk) => {
    if (headBytes < HEAD_BYTES) head.push(Buffer.from(chunk.subarray(0, HEAD_BYTES)));
    headBytes += chunk.byteLength;
  });
  if (content?.byteSize !== whole.byteSize) throw new LostBytesError();
  return { ...content, head: Buffer.concat(head).subarray(0, HEAD_BYTES) };
}

async function end({ ctx, upload, stopRenewals }: Run): Promise<void> {
  stopRenewals();
  await removeObjectsSoon(ctx, await rows.endClaimed(ctx.db, upload));
}
