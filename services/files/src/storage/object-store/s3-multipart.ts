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
import { abortUpload, removeObject } from './s3-remove.ts';

/** The least that S3 takes for a part other than the last. It is also what an upload holds in memory. */
const PART_BYTES = 5 * 1024 * 1024;
const CLEAN_UP_TRIES_MAX = 3;
/** In milliseconds. Short, because the store may be hanging; the sweeper removes what is left. */
const CLEAN_UP_MS_MAX = 2_000;

/** What a write has asked of the store so far, and so what must be undone. */
interface Progress {
  uploadId?: string | undefined;
  /** Something may be there, also if the store has not answered. */
  begun: boolean;
}

/**
 * Writes a body as one object: in one request if it fits into a part, else part by part, each sent before the next is read, from one buffer. Leaves
 * nothing when it fails, as far as the store lets it.
 */
export async function writeObject(
  bucket: S3Bucket,
  key: string,
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  const reader = new BodyReader(body, signal);
  const progress: Progress = { begun: false };
  try {
    const buffer = Buffer.allocUnsafeSlow(PART_BYTES);
    const length = await reader.fill(buffer);
    const byteSize = (await reader.hasMore())
      ? await sendParts({ bucket, key, reader, signal, progress }, buffer)
      : await sendWhole({ bucket, key, progress }, buffer.subarray(0, length));
    reader.throwIfFailed();
    await verify(bucket, key, byteSize);
    reader.throwIfFailed();
  } catch (err) {
    if (progress.begun) await cleanUp(bucket, key, progress);
    // Where the body or the signal is the reason, the store's complaint is only what followed.
    reader.throwIfFailed();
    throw err;
  } finally {
    reader.close();
  }
}

/**
 * Not ended by the caller's signal, nor is the request that completes an upload: the store may already be at it, and only once it has answered is it
 * known that a removal comes after. The bounds of a call without a signal hold.
 */
async function sendWhole(
  { bucket, key, progress }: { bucket: S3Bucket; key: string; progress: Progress },
  bytes: Uint8Array,
): Promise<number> {
  progress.begun = true;
  const request = new PutObjectCommand({ Bucket: bucket.name, Key: key, Body: bytes });
  await bucket.call((client, options) => client.send(request, options));
  return bytes.length;
}

interface PartsTarget {
  readonly bucket: S3Bucket;
  readonly key: string;
  readonly reader: BodyReader;
  readonly signal: AbortSignal;
  readonly progress: Progress;
}

/** Sends a buffer that is full, and all that follows; gives the number of bytes. */
async function sendParts({ bucket, key, reader, signal, progress }: PartsTarget, buffer: Buffer): Promise<number> {
  const target = { Bucket: bucket.name, Key: key };
  progress.begun = true;
  // The parts' checksums are refused where the upload was not begun with theirs.
  const checksum = bucket.checksums === 'when_supported' ? ({ ChecksumAlgorithm: 'CRC32' } as const) : {};
  const create = new CreateMultipartUploadCommand({ ...target, ...checksum });
  const { UploadId } = await bucket.call((client, options) => client.send(create, options));
  if (!UploadId) throw new Error('the object store named no upload');
  progress.uploadId = UploadId;
  reader.throwIfFailed();

  const parts: CompletedPart[] = [];
  let byteSize = 0;
  for (let length = buffer.length; length > 0; length = await reader.fill(buffer)) {
    const PartNumber = parts.length + 1;
    const part = new UploadPartCommand({ ...target, UploadId, PartNumber, Body: buffer.subarray(0, length) });
    const { ETag, ChecksumCRC32 } = await bucket.call((client, options) => client.send(part, options), signal);
    if (!ETag) throw new Error(`the object store did not confirm part ${PartNumber}`);
    parts.push({ PartNumber, ETag, ...(ChecksumCRC32 === undefined ? {} : { ChecksumCRC32 }) });
    byteSize += length;
  }
  const request = new CompleteMultipartUploadCommand({ ...target, UploadId, MultipartUpload: { Parts: parts } });
  await bucket.call((client, options) => client.send(request, options));
  return byteSize;
}

/** Some servers answer that an upload is complete while it is not, or before they know. */
async function verify(bucket: S3Bucket, key: string, byteSize: number): Promise<void> {
  const request = new HeadObjectCommand({ Bucket: bucket.name, Key: key });
  const { ContentLength } = await bucket.call((client, options) => client.send(request, options));
  if (ContentLength !== byteSize) throw new Error(`the object store holds ${ContentLength} bytes of ${byteSize}`);
}

/**
 * Ends the upload and removes the object, as either may be there whatever failed: a store that answers too late, or with an error, may have done
 * what it was asked. What is still there after the last try is left to a later removal.
 */
async function cleanUp(bucket: S3Bucket, key: string, { uploadId }: Progress): Promise<void> {
  const signal = AbortSignal.timeout(CLEAN_UP_MS_MAX);
  for (let tries = 1; tries <= CLEAN_UP_TRIES_MAX && !signal.aborted; tries += 1) {
    try {
      if (uploadId !== undefined) await abortUpload(bucket, { key, uploadId }, signal);
      return await removeObject(bucket, key, signal);
    } catch {
      // The reason of the first failure is what the caller is told.
    }
  }
}
