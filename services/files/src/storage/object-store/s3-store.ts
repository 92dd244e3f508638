import { Readable } from 'node:stream';
import { GetObjectCommand, HeadBucketCommand, HeadObjectCommand } from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { attachment } from './content-disposition.ts';
import { requireObjectKey } from './object-key-parts.ts';
import type { ByteRange, DownloadDescription, ObjectStore } from './object-store.ts';
import { createS3Bucket, type S3Bucket, type S3Settings } from './s3-client.ts';
import { isAbsent, isPastEnd } from './s3-error.ts';
import { listEverything } from './s3-list.ts';
import { writeObject } from './s3-multipart.ts';
import { removeObject } from './s3-remove.ts';

export type { S3Settings };

/** Keeps objects in a bucket that is there already. Rejects with S3Error where the server does. */
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
    list: () => listEverything(bucket),
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
  const request = new GetObjectCommand({
    Bucket: bucket.name,
    Key: key,
    ...(range === undefined ? {} : { Range: `bytes=${range.start}-${range.end}` }),
  });
  try {
    const { Body } = await bucket.call((client, options) => client.send(request, options));
    // In Node.js the library answers with the response's own stream.
    return Body as Readable;
  } catch (err) {
    return isPastEnd(err) ? Readable.from([]) : absent(err);
  }
}

async function statObject(bucket: S3Bucket, key: string): Promise<{ byteSize: number } | undefined> {
  const request = new HeadObjectCommand({ Bucket: bucket.name, Key: key });
  try {
    const { ContentLength } = await bucket.call((client, options) => client.send(request, options));
    return { byteSize: ContentLength ?? 0 };
  } catch (err) {
    return absent(err);
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

function absent(err: unknown): undefined {
  if (!isAbsent(err)) throw err;
}
