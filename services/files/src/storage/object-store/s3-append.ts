import type { Readable } from 'node:stream';
import { buffer as readAll } from 'node:stream/consumers';
import {
  type CompletedPart,
  CompleteMultipartUploadCommand,
  GetObjectCommand,
  HeadObjectCommand,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import { createBodyReader } from './body-reader.ts';
import { type Appended, type AppendOptions, LostBytesError, objectKey, requireObjectKey } from './object-store.ts';
import { ignoreAbsent, type S3Bucket } from './s3-client.ts';
import { abortUploads, createUpload, PART_BYTES, sendPart, type Target } from './s3-write.ts';

/** Parts of a multipart upload, and in `tail` the id of an object with the bytes after the last. */
interface State {
  readonly uploadId?: string | undefined;
  readonly parts?: readonly CompletedPart[];
  /** Part numbers left out, as a process that lost its claim may still send them. */
  readonly skipped?: number;
  readonly tail?: string;
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
  const { parts: known = [], tail, ...rest }: State = from.state;
  const skipped = (rest.skipped ?? 0) + (isContested ? 1 : 0);
  const parts = [...known];
  let { uploadId } = rest;
  let { byteSize } = from;
  const buffer = Buffer.allocUnsafeSlow(PART_BYTES);
  let filled = byteSize - parts.length * PART_BYTES;
  if (tail !== undefined) buffer.set(await readTail(bucket, target, tail, filled));
  const reader = createBodyReader(body, signal);
  try {
    for (;;) {
      const length = await reader.fill(buffer.subarray(filled));
      byteSize += length;
      filled += length;
      if (filled < PART_BYTES) break;
      uploadId ??= await createUpload(bucket, target);
      const part = { ...target, UploadId: uploadId, PartNumber: parts.length + 1 + skipped };
      parts.push(await sendPart(bucket, part, buffer, signal).catch(rejectLost));
      filled = 0;
    }
  } finally {
    reader.close();
  }
  if (byteSize === from.byteSize) return from;
  const state = { uploadId, parts, skipped };
  if (filled === 0) return { byteSize, state: state as State };
  await bucket.send(new PutObjectCommand({ ...tailOf(target, writerId), Body: buffer.subarray(0, filled) }));
  return { byteSize, state: { ...state, tail: writerId } as State };
}

/** Completes the parts, or stores the tail where there are none, and removes other uploads. */
export async function publishParts(bucket: S3Bucket, target: Target, { byteSize, state }: Appended): Promise<void> {
  const { uploadId, parts = [], skipped = 0, tail }: State = state;
  if (!(await isWhole(bucket, target, byteSize))) {
    const filled = byteSize - parts.length * PART_BYTES;
    const last = tail === undefined ? undefined : await readTail(bucket, target, tail, filled);
    if (uploadId === undefined) await bucket.send(new PutObjectCommand({ ...target, Body: last ?? Buffer.alloc(0) }));
    else {
      const upload = { ...target, UploadId: uploadId };
      const PartNumber = parts.length + 1 + skipped;
      const Parts = last ? [...parts, await sendPart(bucket, { ...upload, PartNumber }, last).catch(rejectLost)] : [...parts];
      const command = new CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts } });
      await bucket.send(command).catch(rejectLost);
    }
    // Some servers respond that an upload is complete while it is not.
    if (!(await isWhole(bucket, target, byteSize))) throw new Error('the object store does not hold the whole object');
  }
  await abortUploads(bucket, target);
}

async function isWhole(bucket: S3Bucket, target: Target, byteSize: number): Promise<boolean> {
  const found = await bucket.send(new HeadObjectCommand(target)).catch(ignoreAbsent);
  return found?.ContentLength === byteSize;
}

async function readTail(bucket: S3Bucket, target: Target, tail: string, byteSize: number): Promise<Buffer> {
  const found = await bucket.send(new GetObjectCommand(tailOf(target, tail))).catch(ignoreAbsent);
  const bytes = found && (await readAll(found.Body as Readable));
  if (bytes?.length !== byteSize) throw new LostBytesError();
  return bytes;
}

function rejectLost(err: unknown): never {
  ignoreAbsent(err);
  throw new LostBytesError();
}

function tailOf({ Bucket, Key }: Target, id: string): Target {
  return { Bucket, Key: objectKey(requireObjectKey(Key).ownerId, id) };
}
