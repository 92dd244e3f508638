import {
  AbortMultipartUploadCommand,
  type CompletedPart,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  type ListMultipartUploadsOutput,
  PutObjectCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { type BodyReader, createBodyReader } from './body-reader.ts';
import { ignoreAbsent, type S3Bucket } from './s3-client.ts';

/** The smallest part that S3 takes before the last, and the memory of an upload. */
export const PART_BYTES = 5 * 1024 * 1024;
const CLEAN_UP_TRIES_MAX = 3;
/** In milliseconds. Short, because the store may hang; the sweeper removes what is left. */
const CLEAN_UP_MS_MAX = 2_000;

export type Target = Readonly<Record<'Bucket' | 'Key', string>>;

interface Write {
  readonly bucket: S3Bucket;
  readonly target: Target;
  readonly reader: BodyReader;
  readonly signal: AbortSignal;
  uploadId?: string;
  /** Something may be stored, even if the store has not responded. */
  hasBegun: boolean;
}

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
  const reader = createBodyReader(body, signal);
  const write: Write = { bucket, target, reader, signal, hasBegun: false };
  try {
    const buffer = Buffer.allocUnsafeSlow(PART_BYTES);
    const length = await reader.fill(buffer);
    write.hasBegun = true;
    const byteSize = length < PART_BYTES ? await sendWhole(write, buffer.subarray(0, length)) : await sendParts(write, buffer);
    signal.throwIfAborted();
    // Some servers respond that an upload is complete while it is not, or before they know.
    const { ContentLength } = await bucket.send(new HeadObjectCommand(target));
    if (ContentLength !== byteSize) throw new Error(`the object store holds ${ContentLength} bytes of ${byteSize}`);
    signal.throwIfAborted();
  } catch (err) {
    // If the signal aborted, its reason is the cause, and the store's error only followed.
    const reason = signal.aborted ? signal.reason : err;
    if (write.hasBegun) await cleanUp(write);
    throw reason;
  } finally {
    reader.close();
  }
}

/**
 * The caller's signal ends neither this request nor the one that completes an upload: only after
 * their response is it known that a removal comes later.
 */
async function sendWhole({ bucket, target }: Write, bytes: Uint8Array): Promise<number> {
  await bucket.send(new PutObjectCommand({ ...target, Body: bytes }));
  return bytes.length;
}

async function sendParts(write: Write, buffer: Buffer): Promise<number> {
  const { bucket, target, reader, signal } = write;
  const UploadId = await createUpload(bucket, target);
  write.uploadId = UploadId;
  signal.throwIfAborted();
  const Parts: CompletedPart[] = [];
  let byteSize = 0;
  for (let length = buffer.length; length > 0; length = await reader.fill(buffer)) {
    const part = { ...target, UploadId, PartNumber: Parts.length + 1 };
    Parts.push(await sendPart(bucket, part, buffer.subarray(0, length), signal));
    byteSize += length;
  }
  await bucket.send(new CompleteMultipartUploadCommand({ ...target, UploadId, MultipartUpload: { Parts } }));
  return byteSize;
}

export async function createUpload(bucket: S3Bucket, target: Target): Promise<string> {
  const { UploadId } = await bucket.send(new CreateMultipartUploadCommand(target));
  if (!UploadId) throw new Error('the object store named no upload');
  return UploadId;
}

export async function sendPart(
  bucket: S3Bucket,
  part: Target & { readonly UploadId: string; readonly PartNumber: number },
  bytes: Buffer,
  signal?: AbortSignal,
): Promise<CompletedPart> {
  const { PartNumber } = part;
  const { ETag } = await bucket.send(new UploadPartCommand({ ...part, Body: bytes }), signal);
  if (!ETag) throw new Error(`the object store did not confirm part ${PartNumber}`);
  return { PartNumber, ETag };
}

/**
 * Aborts the upload and removes the object, as either may exist whatever failed: a store that
 * responds too late, or with an error, may have done what it was asked.
 */
async function cleanUp({ bucket, target, uploadId }: Write): Promise<void> {
  const signal = AbortSignal.timeout(CLEAN_UP_MS_MAX);
  for (let tries = 1; tries <= CLEAN_UP_TRIES_MAX && !signal.aborted; tries += 1) {
    try {
      return await removeObject(bucket, target, signal, uploadId);
    } catch {}
  }
}

/**
 * Aborts every upload of exactly this key, then removes the object, also one that an upload
 * completes meanwhile. `uploadId` is aborted first, as not every server lists uploads.
 */
export async function removeObject(bucket: S3Bucket, target: Target, signal?: AbortSignal, uploadId?: string): Promise<void> {
  await abortUploads(bucket, target, signal, uploadId);
  await bucket.send(new DeleteObjectCommand(target), signal).catch(ignoreAbsent);
}

export async function abortUploads(bucket: S3Bucket, target: Target, signal?: AbortSignal, uploadId?: string): Promise<void> {
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
