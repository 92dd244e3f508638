import type { Readable } from 'node:stream';
import { buffer as readAll } from 'node:stream/consumers';
import {
  AbortMultipartUploadCommand,
  type CompletedPart,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  type ListMultipartUploadsOutput,
  PutObjectCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { createBodyReader } from './body-reader.ts';
import { type Appended, type AppendOptions, LostBytesError, objectKey, requireObjectKey } from './object-store.ts';
import { ignoreAbsent, type S3Bucket } from './s3-client.ts';

/** The smallest part that S3 takes before the last, and the memory of an upload. */
const PART_BYTES = 5 * 1024 * 1024;
/** In milliseconds. Short, because the store may hang; the sweeper removes what is left. */
const CLEAN_UP_MS_MAX = 2_000;

type Target = Readonly<Record<'Bucket' | 'Key', string>>;

/** Whole parts that were sent. */
interface Parts {
  uploadId?: string | undefined;
  readonly parts: CompletedPart[];
  /** Part numbers left out, as a process that lost its claim may still send them. */
  readonly skipped: number;
  /** Something may be stored, even if the store has not responded. */
  hasBegun?: boolean;
}

/** Parts of a multipart upload, and in `tail` the id of an object with the bytes after the last. */
type State = Partial<Omit<Parts, 'hasBegun'>> & Appended['state'];

/**
 * Writes a body in one request if it is smaller than a part, else part by part from one buffer.
 * Tries to leave nothing when it fails.
 */
export async function writeObject(
  bucket: S3Bucket,
  target: Target,
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  const parts: Parts = { parts: [], skipped: 0 };
  try {
    const { byteSize, rest } = await sendParts(bucket, target, parts, { body, signal });
    parts.hasBegun = true;
    await complete(bucket, target, parts, { byteSize, rest, signal });
    signal.throwIfAborted();
  } catch (err) {
    // If the signal aborted, its reason is the cause, and the store's error only followed.
    const reason = signal.aborted ? signal.reason : err;
    // Either may exist whatever failed: a store that responds too late, or with an error, may have
    // done what it was asked.
    const late = AbortSignal.timeout(CLEAN_UP_MS_MAX);
    if (parts.hasBegun) await removeObject(bucket, target, late, parts.uploadId).catch(() => undefined);
    throw reason;
  }
}

/** Sends whole parts, and holds what is left of the body in a separate object. */
export async function appendParts(
  bucket: S3Bucket,
  target: Target,
  from: Appended,
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  { writerId, isContested }: AppendOptions,
): Promise<Appended> {
  const { uploadId, parts = [], skipped = 0 }: State = from.state;
  const sent: Parts = { uploadId, parts: [...parts], skipped: skipped + (isContested ? 1 : 0) };
  const held = await readTail(bucket, target, from);
  const { byteSize, rest } = await sendParts(bucket, target, sent, { body, signal, held }).catch(rejectLost);
  if (byteSize === held.length) return from;
  const state: State = { uploadId: sent.uploadId, parts: sent.parts, skipped: sent.skipped };
  const appended = { byteSize: from.byteSize - held.length + byteSize, state };
  if (rest.length === 0) return appended;
  await bucket.send(new PutObjectCommand({ ...tailOf(target, writerId), Body: rest }));
  return { ...appended, state: { ...state, tail: writerId } as State };
}

/** Completes the parts, or stores the tail if no part was sent, and removes other uploads. */
export async function publishParts(bucket: S3Bucket, target: Target, whole: Appended): Promise<void> {
  const { byteSize } = whole;
  const { uploadId, parts = [], skipped = 0 }: State = whole.state;
  if (!(await isWhole(bucket, target, byteSize))) {
    const rest = await readTail(bucket, target, whole);
    await complete(bucket, target, { uploadId, parts, skipped }, { byteSize, rest }).catch(rejectLost);
  }
  await abortUploads(bucket, target);
}

/**
 * Sends the whole parts of held bytes and a body from one buffer. Returns the size of both, and the
 * bytes after the last part.
 */
async function sendParts(
  bucket: S3Bucket,
  target: Target,
  sent: Parts,
  { body, signal, held }: { readonly body: AsyncIterable<Uint8Array>; readonly signal: AbortSignal; readonly held?: Buffer },
): Promise<{ readonly byteSize: number; readonly rest: Buffer }> {
  const buffer = Buffer.allocUnsafeSlow(PART_BYTES);
  let filled = held?.copy(buffer) ?? 0;
  let byteSize = filled;
  const reader = createBodyReader(body, signal);
  try {
    for (;;) {
      const length = await reader.fill(buffer.subarray(filled));
      byteSize += length;
      filled += length;
      if (filled < PART_BYTES) return { byteSize, rest: buffer.subarray(0, filled) };
      sent.hasBegun = true;
      sent.uploadId ??= await createUpload(bucket, target);
      sent.parts.push(await sendPart(bucket, target, sent, buffer, signal));
      filled = 0;
    }
  } finally {
    reader.close();
  }
}

async function createUpload(bucket: S3Bucket, target: Target): Promise<string> {
  const { UploadId } = await bucket.send(new CreateMultipartUploadCommand(target));
  if (!UploadId) throw new Error('the object store named no upload');
  return UploadId;
}

async function sendPart(
  bucket: S3Bucket,
  target: Target,
  { uploadId: UploadId, parts, skipped }: Parts,
  Body: Buffer,
  signal: AbortSignal | undefined,
): Promise<CompletedPart> {
  const PartNumber = parts.length + 1 + skipped;
  const { ETag } = await bucket.send(new UploadPartCommand({ ...target, UploadId, PartNumber, Body }), signal);
  if (!ETag) throw new Error(`the object store did not confirm part ${PartNumber}`);
  return { PartNumber, ETag };
}

/**
 * Makes an object of the parts and the rest. The signal ends only the last part: after the response
 * to the others, it is known that a removal comes later.
 */
async function complete(
  bucket: S3Bucket,
  target: Target,
  sent: Parts,
  { byteSize, rest, signal }: { readonly byteSize: number; readonly rest: Buffer; readonly signal?: AbortSignal },
): Promise<void> {
  const { uploadId: UploadId, parts } = sent;
  if (UploadId === undefined) await bucket.send(new PutObjectCommand({ ...target, Body: rest }));
  else {
    const Parts = rest.length > 0 ? [...parts, await sendPart(bucket, target, sent, rest, signal)] : [...parts];
    await bucket.send(new CompleteMultipartUploadCommand({ ...target, UploadId, MultipartUpload: { Parts } }));
  }
  signal?.throwIfAborted();
  // Some servers respond that an upload is complete while it is not, or before they know.
  if (!(await isWhole(bucket, target, byteSize))) throw new Error('the object store does not hold the whole object');
}

async function isWhole(bucket: S3Bucket, target: Target, byteSize: number): Promise<boolean> {
  const found = await bucket.send(new HeadObjectCommand(target)).catch(ignoreAbsent);
  return found?.ContentLength === byteSize;
}

/** The bytes after the last part; none without a tail. */
async function readTail(bucket: S3Bucket, target: Target, { byteSize, state }: Appended): Promise<Buffer> {
  const { parts = [], tail }: State = state;
  if (tail === undefined) return Buffer.alloc(0);
  const found = await bucket.send(new GetObjectCommand(tailOf(target, tail))).catch(ignoreAbsent);
  const bytes = found && (await readAll(found.Body as Readable));
  if (bytes?.length !== byteSize - parts.length * PART_BYTES) throw new LostBytesError();
  return bytes;
}

function rejectLost(err: unknown): never {
  ignoreAbsent(err);
  throw new LostBytesError();
}

function tailOf({ Bucket, Key }: Target, id: string): Target {
  return { Bucket, Key: objectKey(requireObjectKey(Key).ownerId, id) };
}

/**
 * Aborts every upload of exactly this key, then removes the object, also one that an upload
 * completes meanwhile. `uploadId` is aborted first, as not every server lists uploads.
 */
export async function removeObject(bucket: S3Bucket, target: Target, signal?: AbortSignal, uploadId?: string): Promise<void> {
  await abortUploads(bucket, target, signal, uploadId);
  await bucket.send(new DeleteObjectCommand(target), signal).catch(ignoreAbsent);
}

async function abortUploads(bucket: S3Bucket, target: Target, signal?: AbortSignal, uploadId?: string): Promise<void> {
  const abort = async (UploadId: string) => {
    await bucket.send(new AbortMultipartUploadCommand({ ...target, UploadId }), signal).catch(ignoreAbsent);
  };
  if (uploadId !== undefined) await abort(uploadId);
  for await (const { key, uploadId: id } of listUploads(bucket, target.Key, signal)) if (key === target.Key) await abort(id);
}

/** Multipart uploads, neither completed nor aborted, of the keys with a prefix. */
export async function* listUploads(
  bucket: S3Bucket,
  prefix?: string,
  signal?: AbortSignal,
): AsyncIterable<{ key: string; uploadId: string }> {
  let [KeyMarker, UploadIdMarker]: Array<string | undefined> = [];
  for (;;) {
    const from = { Bucket: bucket.name, Prefix: prefix, KeyMarker, UploadIdMarker };
    const page: ListMultipartUploadsOutput = await bucket.send(new ListMultipartUploadsCommand(from), signal);
    for (const { Key: key, UploadId: uploadId } of page.Uploads ?? []) {
      if (key !== undefined && uploadId !== undefined) yield { key, uploadId };
    }
    // Some servers repeat the last page for ever.
    const advances = page.NextKeyMarker !== KeyMarker || page.NextUploadIdMarker !== UploadIdMarker;
    if (!page.IsTruncated || !advances) return;
    ({ NextKeyMarker: KeyMarker, NextUploadIdMarker: UploadIdMarker } = page);
  }
}
