import { Histogram, isMeasuring } from '@latchkey/kit/telemetry/metrics';
import { activeTracer, inSpan } from '@latchkey/kit/telemetry/tracing';
import type { AvatarWorkerConfig } from '../../config.ts';
import { createDiskStore } from './disk-store.ts';
import type { ObjectStore } from './object-store.ts';

const durations = new Histogram({
  name: 'latchkey_object_store_duration_seconds',
  help: 'Time of object store operations, by operation and outcome: ok or failed. That of put is mostly the client sending.',
  labels: ['operation', 'outcome'],
  buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 180],
});

export function createObjectStore(config: AvatarWorkerConfig): ObjectStore {
  const store = config.OBJECT_STORE === 'disk' ? createDiskStore(config.OBJECTS_DIR as string) : loadS3Store(config);
  return observeStore(store);
}

/** Measures and traces the operations of a store; returns the same store where neither is on. */
export function observeStore(store: ObjectStore): ObjectStore {
  if (!isMeasuring() && !activeTracer()) return store;
  return {
    ...store,
    put: (...args) => observed('put', () => store.put(...args)),
    append: (...args) => observed('append', () => store.append(...args)),
    publish: (...args) => observed('publish', () => store.publish(...args)),
    read: (...args) => observed('read', () => store.read(...args)),
    stat: (key) => observed('stat', () => store.stat(key)),
    remove: (...keys) => observed('remove', () => store.remove(...keys)),
  };
}

async function observed<T>(operation: string, run: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  const observe = (outcome: string) => durations.observe((performance.now() - startedAt) / 1_000, operation, outcome);
  try {
    const result = await inSpan({ name: `object-store ${operation}`, kind: 'client' }, run);
    observe('ok');
    return result;
  } catch (err) {
    observe('failed');
    throw err;
  }
}

/** Loads the S3 library with the first call: it takes some 45 MiB and 150 ms. */
function loadS3Store(config: AvatarWorkerConfig): ObjectStore {
  let loading: Promise<ObjectStore> | undefined;
  const load = async () => (await import('./s3-store.ts')).createS3Store(config);
  const store = () => (loading ??= load());
  return {
    put: async (...args) => (await store()).put(...args),
    append: async (...args) => (await store()).append(...args),
    publish: async (...args) => (await store()).publish(...args),
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
