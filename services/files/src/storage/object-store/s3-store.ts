import { Readable } from 'node:stream';
import { GetObjectCommand, HeadBucketCommand, HeadObjectCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import {
  attachment,
  type ByteRange,
  type ObjectStore,
  parseObjectKey,
  requireObjectKey,
  type StoredObject,
} from './object-store.ts';
import { createS3Bucket, ignoreAbsent, type S3Bucket, S3Error, type S3Settings } from './s3-client.ts';
import { appendParts, listUploads, publishParts, removeObject, writeObject } from './s3-write.ts';

export type { S3Settings };

export function createS3Store(settings: S3Settings, stallMs?: number): ObjectStore {
  const bucket = createS3Bucket(settings, stallMs);
  const target = (key: string) => {
    requireObjectKey(key);
    return { Bucket: bucket.name, Key: key };
  };
  return {
    put: async (key, body, signal) => writeObject(bucket, target(key), body, signal),
    append: async (key, from, body, signal, options) => appendParts(bucket, target(key), from, body, signal, options),
    publish: async (key, whole) => publishParts(bucket, target(key), whole),
    read: async (key, range) => readObject(bucket, target(key), range),
    localPath: () => undefined,
    async stat(key) {
      const found = await bucket.send(new HeadObjectCommand(target(key))).catch(ignoreAbsent);
      return found && { byteSize: found.ContentLength ?? 0 };
    },
    async remove(...keys) {
      for (const key of keys) await removeObject(bucket, target(key));
    },
    list: () => listObjects(bucket),
    async createDownloadUrl(key, { contentType, fileName, lifetimeSeconds }) {
      const response = { ResponseContentType: contentType, ResponseContentDisposition: attachment(fileName) };
      const request = new GetObjectCommand({ ...target(key), ...response });
      return getSignedUrl(bucket.urlClient, request, { expiresIn: lifetimeSeconds });
    },
    check: async () => void (await bucket.send(new HeadBucketCommand({ Bucket: bucket.name }))),
    close: async () => {
      bucket.client.destroy();
      bucket.urlClient.destroy();
    },
  };
}

async function readObject(bucket: S3Bucket, target: { Bucket: string; Key: string }, range: ByteRange | undefined) {
  const request = new GetObjectCommand({ ...target, Range: range && `bytes=${range.start}-${range.end}` });
  try {
    const { Body, ContentRange } = await bucket.send(request);
    // In Node.js the library returns the response's own stream.
    const body = Body as Readable;
    // The start of the object instead of the range would damage a resumed download.
    if (!range || ContentRange?.startsWith(`bytes ${range.start}-`)) return body;
    body.destroy();
    throw new S3Error('the object store ignored the range', 'InvalidRange');
  } catch (err) {
    const isPastEnd = err instanceof S3Error && err.status === 416;
    return isPastEnd ? Readable.from([]) : ignoreAbsent(err);
  }
}

/** Every object and every unfinished upload, a page at a time. Foreign keys are skipped. */
async function* listObjects(bucket: S3Bucket): AsyncIterable<StoredObject> {
  let ContinuationToken: string | undefined;
  do {
    const page = await bucket.send(new ListObjectsV2Command({ Bucket: bucket.name, ContinuationToken }));
    for (const { Key: key = '', Size: byteSize = 0 } of page.Contents ?? []) {
      if (parseObjectKey(key)) yield { key, byteSize, unfinished: false };
    }
    // Some servers repeat the last page for ever.
    const advances = page.IsTruncated && page.NextContinuationToken !== ContinuationToken;
    ContinuationToken = advances ? page.NextContinuationToken : undefined;
  } while (ContinuationToken !== undefined);
  for await (const { key } of listUploads(bucket)) {
    // Its size would cost a request for each.
    if (parseObjectKey(key)) yield { key, byteSize: 0, unfinished: true };
  }
}
