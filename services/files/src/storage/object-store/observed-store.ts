import { Histogram, isMeasuring } from '@latchkey/kit/telemetry/metrics';
import { activeTracer, inSpan } from '@latchkey/kit/telemetry/tracing';
import type { ObjectStore } from './object-store.ts';

const durations = new Histogram({
  name: 'latchkey_object_store_duration_seconds',
  help: 'Time of object store operations, by operation and outcome: ok or failed. That of put is mostly the client sending.',
  labels: ['operation', 'outcome'],
  buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 180],
});

/** Measures and traces the operations of a store; returns the same store where neither is on. */
export function observeStore(store: ObjectStore): ObjectStore {
  if (!isMeasuring() && !activeTracer()) return store;
  return {
    put: (...args) => observed('put', () => store.put(...args)),
    read: (...args) => observed('read', () => store.read(...args)),
    localPath: (key) => store.localPath(key),
    stat: (key) => observed('stat', () => store.stat(key)),
    remove: (...keys) => observed('remove', () => store.remove(...keys)),
    list: () => store.list(),
    createDownloadUrl: (...args) => store.createDownloadUrl(...args),
    check: () => store.check(),
    close: () => store.close(),
  };
}

async function observed<T>(operation: string, run: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  const took = () => (performance.now() - startedAt) / 1_000;
  try {
    const result = await inSpan({ name: `object-store ${operation}`, kind: 'client' }, run);
    durations.observe(took(), operation, 'ok');
    return result;
  } catch (err) {
    durations.observe(took(), operation, 'failed');
    throw err;
  }
}
