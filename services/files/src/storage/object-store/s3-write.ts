import {
  type CompletedPart,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  HeadObjectCommand,
  PutObjectCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { BodyReader } from './body-reader.ts';
import type { S3Bucket } from './s3-client.ts';
import { removeObject } from './s3-remove.ts';

/** The smallest part that S3 takes before the last, and the memory of an upload. */
const PART_BYTES = 5 * 1024 * 1024;
const CLEAN_UP_TRIES_MAX = 3;
/** In milliseconds. Short, because the store may hang; the sweeper removes what is left. */
const CLEAN_UP_MS_MAX = 2_000;

/** One write, and what it has asked of the store so far. */
interface Write {
  readonly bucket: S3Bucket;
  readonly target: { readonly Bucket: string; readonly Key: string };
  readonly reader: BodyReader;
  readonly signal: AbortSignal;
  uploadId?: string;
  /** Something may be stored, even if the store has not responded. */
  hasBegun: boolean;
}

/**
 * Writes a body as one object: in one request if it fits into a part, else part by part from one
 * buffer. Leaves nothing when it fails, as far as the store lets it.
 */
export async function writeObject(
  bucket: S3Bucket,
  key: string,
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  const reader = new BodyReader(body, signal);
  const write: Write = { bucket, target: { Bucket: bucket.name, Key: key }, reader, signal, hasBegun: false };
  try {
    const buffer = Buffer.allocUnsafeSlow(PART_BYTES);
    const length = await reader.fill(buffer);
    const byteSize = (await reader.hasMore())
      ? await sendParts(write, buffer)
      : await sendWhole(write, buffer.subarray(0, length));
    reader.throwIfFailed();
    await verify(write, byteSize);
    reader.throwIfFailed();
  } catch (err) {
    if (write.hasBegun) await cleanUp(write);
    // Where the body or the signal is the reason, the store's error only followed.
    reader.throwIfFailed();
    throw err;
  } finally {
    reader.close();
  }
}

/**
 * The caller's signal does not end this request, nor the one that completes an upload: the store
 * may already be at it, and only after its response is it known that a removal comes later. The
 * bounds of a call without a signal hold.
 */
async function sendWhole(write: Write, bytes: Uint8Array): Promise<number> {
  write.hasBegun = true;
  const request = new PutObjectCommand({ ...write.target, Body: bytes });
  await write.bucket.call((client, options) => client.send(request, options));
  return bytes.length;
}

/** Sends a full buffer and all that follows; returns the number of bytes. */
async function sendParts(write: Write, buffer: Buffer): Promise<number> {
  const { bucket, target, reader, signal } = write;
  write.hasBegun = true;
  const create = new CreateMultipartUploadCommand(target);
  const { UploadId } = await bucket.call((client, options) => client.send(create, options));
  if (!UploadId) throw new Error('the object store named no upload');
  write.uploadId = UploadId;
  reader.throwIfFailed();

  const Parts: CompletedPart[] = [];
  let byteSize = 0;
  for (let length = buffer.length; length > 0; length = await reader.fill(buffer)) {
    const PartNumber = Parts.length + 1;
    const part = new UploadPartCommand({ ...target, UploadId, PartNumber, Body: buffer.subarray(0, length) });
    const { ETag } = await bucket.call((client, options) => client.send(part, options), signal);
    if (!ETag) throw new Error(`the object store did not confirm part ${PartNumber}`);
    Parts.push({ PartNumber, ETag });
    byteSize += length;
  }
  const complete = new CompleteMultipartUploadCommand({ ...target, UploadId, MultipartUpload: { Parts } });
  await bucket.call((client, options) => client.send(complete, options));
  return byteSize;
}

/** Some servers respond that an upload is complete while it is not, or before they know. */
async function verify({ bucket, target }: Write, byteSize: number): Promise<void> {
  const request = new HeadObjectCommand(target);
  const { ContentLength } = await bucket.call((client, options) => client.send(request, options));
  if (ContentLength !== byteSize) throw new Error(`the object store holds ${ContentLength} bytes of ${byteSize}`);
}

/**
 * Aborts the upload and removes the object, as either may exist whatever failed: a store that
 * responds too late, or with an error, may have done what it was asked. A later removal takes what
 * is left after the last try.
 */
async function cleanUp({ bucket, target, uploadId }: Write): Promise<void> {
  const signal = AbortSignal.timeout(CLEAN_UP_MS_MAX);
  for (let tries = 1; tries <= CLEAN_UP_TRIES_MAX && !signal.aborted; tries += 1) {
    try {
      return await removeObject(bucket, target.Key, signal, uploadId);
    } catch {
      // The caller gets the first failure.
    }
  }
}
