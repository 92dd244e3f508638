import { createHash } from 'node:crypto';
import { addAbortSignal } from 'node:stream';
import { type CallIdentity, identifyCall, resumeCall } from '@latchkey/audit/idempotency';
import { runStatement } from '@latchkey/audit/transaction';
import { commonErrors, DomainError } from '@latchkey/kit/errors/errors';
import { releaseBytes } from '@latchkey/kit/http/write-chunk';
import { newId, parseId } from '@latchkey/kit/validation/id';
import type { FilesContext } from '../../context.ts';
import { chunks, uploads } from '../../files-metrics.ts';
import { errors } from '../../proto-errors.ts';
import { isDeleted } from '../application/deleted-application.store.ts';
import { removeObjectsSoon } from '../object-deletion/object-deletion.ts';
import { type Appended, LostBytesError, objectKey } from '../object-store/object-store.ts';
import { commitUpload } from '../upload/commit-upload.ts';
import { type AccountBody, keepLease, runUploadCall, toDomainError } from '../upload/upload-call.ts';
import { lockUsage } from '../upload/usage.store.ts';
import { HEAD_BYTES } from '../upload/verified-body.ts';
import { ChunkBody } from './chunk-body.ts';
import * as rows from './resumable-upload.store.ts';
import { findUpload } from './resumable-upload.ts';

/**
 * Bytes after which those of a chunk are made durable and recorded: a killed process loses fewer. A
 * multiple of the parts of S3, whose rest is stored apart.
 */
const CHECKPOINT_BYTES = 10 * 1024 * 1024;

export interface Chunk extends AccountBody {
  readonly uploadId: string;
  readonly byteOffset: number;
}

export type AppendUpload = (chunk: Chunk) => Promise<rows.ResumableUpload>;

export function createAppendUpload(ctx: FilesContext): AppendUpload {
  const { logger } = ctx;
  return (chunk) => {
    const { body, requestId, uploadId } = chunk;
    return runUploadCall({ name: 'chunk', body, requestId, logger }, () => append(ctx, chunk), {
      facts: ({ byteOffset, state }) => ({ uploadId, byteOffset, state }),
      onEnd: (outcome) => chunks.add(1, outcome),
    });
  };
}

/**
 * Appends a chunk to an upload at its offset. Bytes that arrive before the body fails are stored; a
 * chunk with a checksum is stored whole or not at all. With the last byte the file is committed; an
 * empty chunk repeats a commit that failed. Throws the errors of `AppendUploadResponse`.
 */
async function append(ctx: FilesContext, chunk: Chunk): Promise<rows.ResumableUpload> {
  const { byteOffset, byteSize = 0, requestId } = chunk;
  const [accountId, id] = [parseId(chunk.accountId), parseId(chunk.uploadId)];
  if (!accountId || !id) throw errors.upload_not_found();
  const call = identifyCall(accountId, chunk.idempotency ?? {});
  const claimed = { accountId, id, byteOffset, claimId: newId(), callId: call?.id ?? null, processLock: ctx.processLock.id };
  const upload = await rows.claimUpload(ctx.db, claimed);
  if (!upload) return rejectUnclaimed(ctx, accountId, id, chunk, call);
  const body = new ChunkBody(chunk.body, upload.byteSize - byteOffset, chunk.checksum);
  const claim = keepClaim(ctx, upload, body);
  const { signal } = claim;
  try {
    if (byteOffset + byteSize > upload.byteSize) throw errors.chunk_too_long();
    const isAtomic = chunk.checksum !== undefined || call !== undefined;
    const whole = await store(ctx, upload, body, claim, { isAtomic, call });
    if (body.error) throw body.error;
    return await finish(ctx, upload, whole, { ...chunk, requestId, claim });
  } catch (err) {
    signal.throwIfAborted();
    if (!(err instanceof LostBytesError)) throw err;
    ctx.logger.error({ err, uploadId: id }, 'the object store lost the bytes of an upload');
    await end(ctx, upload, claim);
    throw errors.upload_expired();
  } finally {
    await claim.release();
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

interface KeptClaim {
  readonly signal: AbortSignal;
  /** Stops the renewals: one would report the end of the upload by its own call as a lost claim. */
  stop(): void;
  /** True while the store may hold an object of the claim that is not recorded. */
  mayHaveObject: boolean;
  release(): Promise<void>;
}

/** Renews the claim until it is released, and stops the body at its deadline or with the signal. */
function keepClaim({ db, limits, logger }: FilesContext, upload: rows.ClaimedUpload, body: ChunkBody): KeptClaim {
  const { signal, release } = keepLease(logger, {
    leaseMs: rows.CLAIM_MS,
    deadlineMs: limits.uploadDeadlineMs,
    renew: () => rows.renewClaim(db, upload),
    explainLoss: () => explainLoss(db, upload),
    onDeadline: () => body.stop(errors.upload_timeout()),
  });
  signal.addEventListener('abort', () => body.stop(signal.reason));
  return {
    signal,
    stop: release,
    mayHaveObject: false,
    async release() {
      release();
      await rows
        .releaseClaim(db, upload, this.mayHaveObject)
        .catch((err: unknown) => logger.warn({ err, uploadId: upload.id }, 'upload claim not released'));
    },
  };
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
async function store(
  ctx: FilesContext,
  upload: rows.ClaimedUpload,
  body: ChunkBody,
  claim: KeptClaim,
  { isAtomic, call }: { readonly isAtomic: boolean; readonly call: CallIdentity | undefined },
): Promise<Appended> {
  const { signal } = claim;
  const key = objectKey(upload.applicationId, upload.id);
  let stored: Appended = { byteSize: upload.byteOffset, state: upload.storeState };
  const options = { writerId: upload.claimId, isContested: upload.isContested };
  // An empty chunk: the bytes may be an object by now.
  if (upload.byteOffset === upload.byteSize) return stored;
  while (!body.isEnded) {
    const piece = body.take(CHECKPOINT_BYTES - (stored.byteSize % CHECKPOINT_BYTES));
    claim.mayHaveObject = true;
    const appended = await ctx.store.append(key, stored, piece, signal, options).catch((err: unknown) => {
      signal.throwIfAborted();
      if (err instanceof LostBytesError) throw err;
      ctx.logger.error({ err, key }, 'chunk not stored');
      throw commonErrors.dependency_unavailable();
    });
    options.isContested = false;
    const isRecorded = isAtomic ? body.isEnded && !body.error : appended.byteSize > stored.byteSize;
    if (isRecorded) await resumeCall(call, ctx.resultKey, () => runStatement(ctx.db, (db) => record(db, upload, appended)));
    claim.mayHaveObject = isAtomic && !isRecorded;
    stored = appended;
  }
  return stored;
}

async function record(db: FilesContext['db'], upload: rows.ClaimedUpload, appended: Appended): Promise<rows.ResumableUpload> {
  const recorded = await rows.recordAppended(db, upload, appended);
  if (!recorded) throw await explainLoss(db, upload);
  return recorded;
}

/** Commits the file if all its bytes are stored, and returns the upload. */
async function finish(
  ctx: FilesContext,
  upload: rows.ClaimedUpload,
  whole: Appended,
  { requestId, actor, claim }: Chunk & { readonly claim: KeptClaim },
): Promise<rows.ResumableUpload> {
  const { id, accountId, applicationId, byteSize, expectedChecksum } = upload;
  if (whole.byteSize < byteSize) return findUpload(ctx, accountId, id);
  const key = objectKey(applicationId, id);
  try {
    const content = await publish(ctx, key, whole, claim.signal);
    if (expectedChecksum?.equals(content.checksum) === false) throw errors.upload_checksum_mismatch();
    const endUpload = async (tx: typeof ctx.db) => {
      // Before the row, as a creation holds the lock while it changes rows.
      await lockUsage(tx, accountId);
      if (!(await rows.finishUpload(tx, upload, content.checksum))) throw await explainLoss(tx, upload);
      return true;
    };
    const onFile = async (tx: typeof ctx.db, fileId: string) => {
      if (fileId === id && upload.fileId) await rows.clearFileId(tx, id);
    };
    const isReplacement = upload.fileId !== null;
    await commitUpload(ctx, { ...upload, isReplacement, actor, content, end: endUpload, onFile }, requestId, claim.signal);
    uploads.add(1, 'stored');
  } catch (err) {
    const known = toDomainError(err);
    uploads.add(1, known?.reason ?? 'internal');
    // Others may pass: the bytes stay, and the commit is repeated.
    if (known && known.httpStatus < 500) await end(ctx, upload, claim);
    throw err;
  }
  return findUpload(ctx, accountId, id);
}

/** Makes an object of the bytes, and reads it back: no digest outlives a process (ADR 22). */
async function publish({ store, logger }: FilesContext, key: string, whole: Appended, signal: AbortSignal) {
  try {
    await store.publish(key, whole);
    const body = await store.read(key);
    if (!body) throw new LostBytesError();
    const sha256 = createHash('sha256');
    const head: Buffer[] = [];
    let byteSize = 0;
    for await (const chunk of addAbortSignal(signal, body) as AsyncIterable<Buffer>) {
      if (byteSize < HEAD_BYTES) head.push(Buffer.from(chunk.subarray(0, HEAD_BYTES)));
      byteSize += chunk.byteLength;
      sha256.update(chunk);
      releaseBytes(chunk);
    }
    if (byteSize !== whole.byteSize) throw new LostBytesError();
    return { byteSize, checksum: sha256.digest(), head: Buffer.concat(head).subarray(0, HEAD_BYTES) };
  } catch (err) {
    signal.throwIfAborted();
    if (err instanceof LostBytesError || err instanceof DomainError) throw err;
    logger.error({ err, key }, 'upload not published');
    throw commonErrors.dependency_unavailable();
  }
}

async function end(ctx: FilesContext, upload: rows.ClaimedUpload, claim: KeptClaim): Promise<void> {
  claim.stop();
  await removeObjectsSoon(ctx, await rows.endUploads(ctx.db, { claim: upload }));
}
