import type { FilesConfig } from '../config.ts';
import { createDiskStore } from './disk-store.ts';
import type { ObjectStore } from './object-store.ts';
import { createS3Store } from './s3-store.ts';

/** The store that the settings choose. Nothing is touched before the first call. */
export function createObjectStore(config: FilesConfig): ObjectStore {
  if (config.OBJECT_STORE === 'disk') return createDiskStore(config.OBJECTS_DIR as string);
  return createS3Store({
    endpoint: config.S3_ENDPOINT,
    region: config.S3_REGION,
    bucket: config.S3_BUCKET as string,
    accessKeyId: config.S3_ACCESS_KEY_ID,
    secretAccessKey: config.S3_SECRET_ACCESS_KEY,
    forcePathStyle: config.S3_FORCE_PATH_STYLE === 'true',
    checksums: config.S3_CHECKSUMS,
  });
}
