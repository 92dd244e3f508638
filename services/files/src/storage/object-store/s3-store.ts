import { Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
} from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import {
  attachment,
  type ByteRange,
  type DownloadDescription,
  type ObjectStore,
  parseObjectKey,
  requireObjectKey,
  type StoredObject,
} from './object-store.ts';
import { createS3Bucket, type S3Bucket, type S3Settings } from './s3-client.ts';
import { ignoreAbsent, isPastEnd } from './s3-error.ts';
import { writeObject } from './s3-write.ts';

export type { S3Settings };

/** Stores objects in a bucket that exists. Rejects with S3Error where the server fails. */
export function createS3Store(settings: S3Settings): ObjectStore {
  const bucket = createS3Bucket(settings);
  return {
    put: async (key, body, signal) => writeObject(bucket, checked(key), body, signal),
    read: async (key, range) => readObject(bucket, checked(key), range),
    localPath: () => undefined,
    stat: async (key) => statObject(bucket, checked(key)),
    async remove(...keys) {
      for (const key of keys) await removeObject(bucket, checked(key));
    },
    list: () => listObjects(bucket),
    createDownloadUrl: async (key, description) => presign(bucket, checked(key), description),
    check: async () => {
      const request = new HeadBucketCommand({ Bucket: bucket.name });
      await bucket.call((client, options) => client.send(request, options));
    },
    close: async () => {
      bucket.client.destroy();
      bucket.urlClient.destroy();
    },
  };
}

function checked(key: string): string {
  requireObjectKey(key);
  return key;
}

async function readObject(bucket: S3Bucket, key: string, range: ByteRange | undefined): Promise<Readable | undefined> {
  const Range = range && `bytes=${range.start}-${range.end}`;
  const request = new GetObjectCommand({ Bucket: bucket.name, Key: key, Range });
  try {
    const { Body } = await bucket.call((client, options) => client.send(request, options));
    // In Node.js the library returns the response's own stream.
    return Body as Readable;
  } catch (err) {
    return isPastEnd(err) ? Readable.from([]) : ignoreAbsent(err);
  }
}

async function statObject(bucket: S3Bucket, key: string): Promise<{ byteSize: number } | undefined> {
  const request = new HeadObjectCommand({ Bucket: bucket.name, Key: key });
  const found = await bucket.call((client, options) => client.send(request, options)).catch(ignoreAbsent);
  return found && { byteSize: found.ContentLength ?? 0 };
}

/** Aborts every upload of exactly this key, then removes the object: one that completes meanwhile is removed as well. */
async function removeObject(bucket: S3Bucket, key: string): Promise<void> {
  for await (const upload of listUploads(bucket, key)) {
    if (upload.key !== key) continue;
    const request = new AbortMultipartUploadCommand({ Bucket: bucket.name, Key: key, UploadId: upload.uploadId });
    await bucket.call((client, options) => client.send(request, options)).catch(ignoreAbsent);
  }
  const request = new DeleteObjectCommand({ Bucket: bucket.name, Key: key });
  await bucket.call((client, options) => client.send(request, options)).catch(ignoreAbsent);
}

/** Every object and every unfinished upload, a page at a time. Foreign keys are skipped. */
async function* listObjects(bucket: S3Bucket): AsyncIterable<StoredObject> {
  let ContinuationToken: string | undefined;
  do {
    const request = new ListObjectsV2Command({ Bucket: bucket.name, ContinuationToken });
    const page = await bucket.call((client, options) => client.send(request, options));
    for (const { Key: key = '', Size: byteSize = 0 } of page.Contents ?? []) {
      if (parseObjectKey(key)) yield { key, byteSize, unfinished: false };
    }
    ContinuationToken = page.IsTruncated ? page.NextContinuationToken : undefined;
  } while (ContinuationToken !== undefined);
  for await (const { key } of listUploads(bucket)) {
    // Its size would cost a request for each.
    if (parseObjectKey(key)) yield { key, byteSize: 0, unfinished: true };
  }
}

/** Where a page begins. */
interface UploadsMarker {
  readonly KeyMarker?: string | undefined;
  readonly UploadIdMarker?: string | undefined;
}

/** Multipart uploads, neither completed nor aborted, of the keys with a prefix. */
async function* listUploads(bucket: S3Bucket, prefix?: string): AsyncIterable<{ key: string; uploadId: string }> {
  for (let marker: UploadsMarker | undefined = {}; marker !== undefined; ) {
    const from: UploadsMarker = marker;
    const request = new ListMultipartUploadsCommand({ Bucket: bucket.name, Prefix: prefix, ...from });
    const page = await bucket.call((client, options) => client.send(request, options));
    for (const { Key: key, UploadId: uploadId } of page.Uploads ?? []) {
      if (key !== undefined && uploadId !== undefined) yield { key, uploadId };
    }
    const next: UploadsMarker = { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker };
    // Some servers repeat the last page for ever.
    const advances = next.KeyMarker !== from.KeyMarker || next.UploadIdMarker !== from.UploadIdMarker;
    marker = page.IsTruncated && advances ? next : undefined;
  }
}

function presign(bucket: S3Bucket, key: string, description: DownloadDescription): Promise<string> {
  const request = new GetObjectCommand({
    Bucket: bucket.name,
    Key: key,
    ResponseContentType: description.contentType,
    ResponseContentDisposition: attachment(description.fileName),
  });
  return getSignedUrl(bucket.urlClient, request, { expiresIn: description.lifetimeSeconds });
}
