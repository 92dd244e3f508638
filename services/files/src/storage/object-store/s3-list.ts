import { ListMultipartUploadsCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { parseObjectKey } from './object-key-parts.ts';
import type { StoredObject } from './object-store.ts';
import type { S3Bucket } from './s3-client.ts';

/** A multipart upload that was neither completed nor ended. */
export interface UnfinishedUpload {
  readonly key: string;
  readonly uploadId: string;
}

/** Every object and every unfinished upload, a page at a time. What is none of ours is passed over. */
export async function* listEverything(bucket: S3Bucket): AsyncIterable<StoredObject> {
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
    // How much of it is there would cost a request for each.
    if (parseObjectKey(key)) yield { key, byteSize: 0, unfinished: true };
  }
}

/** Where a page begins. */
interface UploadsMarker {
  readonly KeyMarker?: string | undefined;
  readonly UploadIdMarker?: string | undefined;
}

/** Unfinished uploads of the keys that begin with a text. */
export async function* listUploads(bucket: S3Bucket, prefix?: string, signal?: AbortSignal): AsyncIterable<UnfinishedUpload> {
  let marker: UploadsMarker | undefined = {};
  while (marker !== undefined) {
    const from: UploadsMarker = marker;
    const request = new ListMultipartUploadsCommand({ Bucket: bucket.name, Prefix: prefix, ...from });
    const page = await bucket.call((client, options) => client.send(request, options), signal);
    for (const { Key: key, UploadId: uploadId } of page.Uploads ?? []) {
      if (key !== undefined && uploadId !== undefined) yield { key, uploadId };
    }
    const next: UploadsMarker = { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker };
    // A server that gives the same page for ever is not asked for ever.
    const advances = next.KeyMarker !== from.KeyMarker || next.UploadIdMarker !== from.UploadIdMarker;
    marker = page.IsTruncated && advances ? next : undefined;
  }
}
