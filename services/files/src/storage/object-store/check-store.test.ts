import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { startHttpServer } from '@latchkey/kit/testing/servers';
import { expect, it } from 'vitest';
import { readFilesConfig, readFilesProcessConfig } from '../../config.ts';
import { storeFile } from '../../testing/stored-file.ts';
import { SECRET_KEY, useTestFiles } from '../../testing/test-files.ts';
import { checkStore } from './check-store.ts';
import { createObjectStore } from './create-object-store.ts';

const files = useTestFiles();

/** Checks the store of these settings as the service does when it starts. */
async function checkAtStart(env: Record<string, string>): Promise<void> {
  const config = readFilesConfig({ DATABASE_URL: files.url, REDIS_URL: 'redis://localhost:1', SECRET_KEY, ...env });
  const store = createObjectStore(config);
  await checkStore({ ...files.ctx, store }, config).finally(() => store.close());
}

it('rejects a missing folder at start while the database has files, until an operator makes it', async () => {
  await storeFile(files, files.createOwned());
  const elsewhere = join(files.objectsDir, 'mistyped');
  const sentence = `The database has files, and OBJECTS_DIR ${elsewhere} has none`;
  await expect(checkAtStart({ OBJECTS_DIR: elsewhere })).rejects.toThrow(sentence);
  expect(await readdir(files.objectsDir)).not.toContain('mistyped');
  await mkdir(join(elsewhere, 'objects'), { recursive: true });
  await checkAtStart({ OBJECTS_DIR: elsewhere });
});

it.each([
  [403, 'denies access to S3 bucket `uploads`. Correct S3_ACCESS_KEY_ID'],
  [404, 'S3 bucket `uploads` does not exist at'],
  [301, 'rejects requests for S3 bucket `uploads`. Correct S3_REGION'],
])('rejects a bucket at start that the server answers with %i, without a secret', async (status, sentence) => {
  const url = await startHttpServer((_req, res) => void res.writeHead(status).end());
  const s3 = { OBJECT_STORE: 's3', S3_BUCKET: 'uploads', S3_ENDPOINT: url, S3_FORCE_PATH_STYLE: 'true' };
  const keys = { S3_ACCESS_KEY_ID: 'the-id', S3_SECRET_ACCESS_KEY: 'the-secret' };
  const { message } = (await checkAtStart({ ...s3, ...keys }).catch((err: Error) => err)) as Error;
  expect(message).toContain(sentence);
  expect(message).not.toMatch(/the-id|the-secret/);
});

it('names every wrong setting', () => {
  const wrong = { OBJECTS_DIR: '', APPS_URL: 'x', S3_PUBLIC_ENDPOINT: 'localhost:7070', SECRET_KEY: 'short' };
  const read = () => readFilesProcessConfig(wrong);
  for (const sentence of [
    'SECRET_KEY must have at least 32 characters',
    'APPS_URL must be a URL that starts with http',
    'S3_PUBLIC_ENDPOINT must be a URL that starts with http',
    'OBJECTS_DIR is required for OBJECT_STORE=disk',
  ]) {
    expect(read).toThrow(sentence);
  }
});
