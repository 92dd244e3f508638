import { AbortMultipartUploadCommand, DeleteObjectCommand } from '@aws-sdk/client-s3';
import type { S3Bucket } from './s3-client.ts';
import { isAbsent } from './s3-error.ts';
import { listUploads, type UnfinishedUpload } from './s3-list.ts';

/** Ends every upload of exactly this key, then removes the object: one that completes meanwhile is removed as well. */
export async function removeObject(bucket: S3Bucket, key: string, signal?: AbortSignal): Promise<void> {
  for await (const upload of listUploads(bucket, key, signal)) {
    if (upload.key === key) await abortUpload(bucket, upload, signal);
  }
  const request = new DeleteObjectCommand({ Bucket: bucket.name, Key: key });
  await ignoreAbsence(bucket.call((client, options) => client.send(request, options), signal));
}

/** Ends an upload and removes its parts; one that is gone already is as good. */
export async function abortUpload(bucket: S3Bucket, { key, uploadId }: UnfinishedUpload, signal?: AbortSignal): Promise<void> {
  const request = new AbortMultipartUploadCommand({ Bucket: bucket.name, Key: key, UploadId: uploadId });
  await ignoreAbsence(bucket.call((client, options) => client.send(request, options), signal));
}

async function ignoreAbsence(call: Promise<unknown>): Promise<void> {
  await call.catch((err: unknown) => {
    if (!isAbsent(err)) throw err;
  });
}
