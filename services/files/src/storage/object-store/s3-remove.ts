import { AbortMultipartUploadCommand, DeleteObjectCommand, ListMultipartUploadsCommand } from '@aws-sdk/client-s3';
import type { S3Bucket } from './s3-client.ts';
import { ignoreAbsent } from './s3-error.ts';

/**
 * Aborts every upload of exactly this key, then removes the object: one that completes meanwhile is removed as well.
 *
 * @param uploadId an upload to abort first, as not every server lists uploads
 */
export async function removeObject(bucket: S3Bucket, key: string, signal?: AbortSignal, uploadId?: string): Promise<void> {
  const abort = async (UploadId: string) => {
    const request = new AbortMultipartUploadCommand({ Bucket: bucket.name, Key: key, UploadId });
    await bucket.call((client, options) => client.send(request, options), signal).catch(ignoreAbsent);
  };
  if (uploadId !== undefined) await abort(uploadId);
  for await (const upload of listUploads(bucket, key, signal)) if (upload.key === key) await abort(upload.uploadId);
  const request = new DeleteObjectCommand({ Bucket: bucket.name, Key: key });
  await bucket.call((client, options) => client.send(request, options), signal).catch(ignoreAbsent);
}

/** Where a page begins. */
interface UploadsMarker {
  readonly KeyMarker?: string | undefined;
  readonly UploadIdMarker?: string | undefined;
}

/** Multipart uploads, neither completed nor aborted, of the keys with a prefix. */
export async function* listUploads(
  bucket: S3Bucket,
  prefix?: string,
  signal?: AbortSignal,
): AsyncIterable<{ key: string; uploadId: string }> {
  for (let marker: UploadsMarker | undefined = {}; marker !== undefined; ) {
    const from: UploadsMarker = marker;
    const request = new ListMultipartUploadsCommand({ Bucket: bucket.name, Prefix: prefix, ...from });
    const page = await bucket.call((client, options) => client.send(request, options), signal);
    for (const { Key: key, UploadId: uploadId } of page.Uploads ?? []) {
      if (key !== undefined && uploadId !== undefined) yield { key, uploadId };
    }
    const next: UploadsMarker = { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker };
    // Some servers repeat the last page for ever.
    const advances = next.KeyMarker !== from.KeyMarker || next.UploadIdMarker !== from.UploadIdMarker;
    marker = page.IsTruncated && advances ? next : undefined;
  }
}
