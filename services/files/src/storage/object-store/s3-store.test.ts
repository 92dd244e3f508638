import { newId } from '@latchkey/kit/validation/id';
import { startFauxqs } from 'fauxqs';
import { expect, it } from 'vitest';
import { readFilesConfig } from '../../config.ts';
import { newKey } from '../../testing/object-store/bodies.ts';
import { listOf } from '../../testing/object-store/object-store-contract.ts';
import { describeS3Store } from '../../testing/object-store/s3-contract.ts';
import { createObjectStore } from './create-object-store.ts';
import { createS3Store } from './s3-store.ts';

const fauxqs = await startFauxqs({ port: 0, host: '127.0.0.1', logger: false });

const server = {
  endpoint: `http://127.0.0.1:${fauxqs.port}`,
  accessKeyId: 'any',
  secretAccessKey: 'not-looked-at',
  listsUnfinished: false,
  readsUrls: false,
};

describeS3Store('an S3 store', { server, stop: () => fauxqs.stop() });

it.each([
  [undefined, 'http://s3:7070'],
  ['https://downloads.example.com', 'https://downloads.example.com'],
])('signs URLs for S3_PUBLIC_ENDPOINT where that is set: %s', async (S3_PUBLIC_ENDPOINT, origin) => {
  const config = readFilesConfig({
    DATABASE_URL: 'postgres://localhost',
    REDIS_URL: 'redis://localhost',
    SECRET_KEY: 's'.repeat(32),
    OBJECT_STORE: 's3',
    S3_BUCKET: 'objects',
    S3_ENDPOINT: 'http://s3:7070',
    S3_PUBLIC_ENDPOINT,
    S3_ACCESS_KEY_ID: 'any',
    S3_SECRET_ACCESS_KEY: 'secret',
    S3_FORCE_PATH_STYLE: 'true',
  });
  const store = createObjectStore(config);
  const key = newKey();
  const url = await store.createDownloadUrl(key, { fileName: 'a.txt', contentType: 'text/plain', lifetimeSeconds: 60 });
  expect(url).toMatch(new RegExp(`^${origin}/objects/${key}\\?`));
});

it('lists more objects than one page', async () => {
  fauxqs.createBucket('many');
  const store = createS3Store({
    ...server,
    region: 'us-east-1',
    bucket: 'many',
    forcePathStyle: true,
  });
  const applicationId = newId();
  const keys = Array.from({ length: 1_001 }, () => newKey(applicationId));
  // This server looks at no signature.
  for (const key of keys) await fetch(`${server.endpoint}/many/${key}`, { method: 'PUT', body: 'x' });
  expect((await listOf(store, '')).map(({ key }) => key)).toEqual(keys.sort());
});
