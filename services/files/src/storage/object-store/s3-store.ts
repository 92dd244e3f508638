import { Readable } from 'node:stream';
import { GetObjectCommand, HeadBucketCommand, HeadObjectCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
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
import { listUploads, removeObject } from './s3-remove.ts';
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

function presign(bucket: S3Bucket, key: string, description: DownloadDescription): Promise<string> {
  const request = new GetObjectCommand({
    Bucket: bucket.name,
    Key: key,
    ResponseContentType: description.contentType,
    ResponseContentDisposition: attachment(description.fileName),
  });
  return getSignedUrl(bucket.urlClient, request, { expiresIn: description.lifetimeSeconds });
}
