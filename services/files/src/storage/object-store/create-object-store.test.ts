import { startMeasuring } from '@latchkey/kit/telemetry/metrics';
import { expect, it } from 'vitest';
import { readFilesConfig } from '../../config.ts';
import { newKey } from '../../testing/object-store/bodies.ts';
import { createObjectStore, observeStore } from './create-object-store.ts';
import type { ObjectStore } from './object-store.ts';

it.each([
  [undefined, 'http://s3:7070'],
  ['https://downloads.example.com', 'https://downloads.example.com'],
])('signs URLs for S3_PUBLIC_ENDPOINT where that is set: %s', async (S3_PUBLIC_ENDPOINT, origin) => {
  const config = readFilesConfig({
    ...{ DATABASE_URL: 'postgres://localhost', REDIS_URL: 'redis://localhost', SECRET_KEY: 's'.repeat(32) },
    ...{ OBJECT_STORE: 's3', S3_BUCKET: 'objects', S3_ENDPOINT: 'http://s3:7070', S3_PUBLIC_ENDPOINT },
    ...{ S3_ACCESS_KEY_ID: 'any', S3_SECRET_ACCESS_KEY: 'secret', S3_FORCE_PATH_STYLE: 'true' },
  });
  const description = { fileName: 'a.txt', contentType: 'text/plain', lifetimeSeconds: 60 };
  const key = newKey();
  expect(await createObjectStore(config).createDownloadUrl(key, description)).toMatch(new RegExp(`^${origin}/objects/${key}\\?`));
});

it('removes every object of a call, also while it is measured', async () => {
  await startMeasuring('test');
  const removed: string[] = [];
  const store = { remove: async (...keys: string[]) => void removed.push(...keys) } as Partial<ObjectStore> as ObjectStore;
  await observeStore(store).remove('a/1', 'a/2');
  expect(removed).toEqual(['a/1', 'a/2']);
});
