import type { AvatarWorkerConfig } from '../../config.ts';
import { createDiskStore } from './disk-store.ts';
import type { ObjectStore } from './object-store.ts';
import { observeStore } from './observed-store.ts';

/** The store that the settings choose. It touches nothing before the first call. */
export function createObjectStore(config: AvatarWorkerConfig): ObjectStore {
  if (config.OBJECT_STORE === 'disk') return observeStore(createDiskStore(config.OBJECTS_DIR as string));
  return observeStore(loadOnDemand(() => loadS3Store(config)));
}

/** Imported on demand: the S3 library takes some 45 MiB and 150 ms. */
async function loadS3Store(config: AvatarWorkerConfig): Promise<ObjectStore> {
  const { createS3Store } = await import('./s3-store.ts');
  return createS3Store({
    endpoint: config.S3_ENDPOINT,
    publicEndpoint: config.S3_PUBLIC_ENDPOINT,
    region: config.S3_REGION,
    bucket: config.S3_BUCKET as string,
    accessKeyId: config.S3_ACCESS_KEY_ID,
    secretAccessKey: config.S3_SECRET_ACCESS_KEY,
    forcePathStyle: config.S3_FORCE_PATH_STYLE === 'true',
  });
}

function loadOnDemand(load: () => Promise<ObjectStore>): ObjectStore {
  let loading: Promise<ObjectStore> | undefined;
  const store = () => (loading ??= load());
  return {
    put: async (...args) => (await store()).put(...args),
    read: async (...args) => (await store()).read(...args),
    localPath: () => undefined,
    stat: async (...args) => (await store()).stat(...args),
    remove: async (...args) => (await store()).remove(...args),
    async *list() {
      yield* (await store()).list();
    },
    createDownloadUrl: async (...args) => (await store()).createDownloadUrl(...args),
    check: async () => (await store()).check(),
    close: async () => (await loading)?.close(),
  };
}
