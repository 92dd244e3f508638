import { createHash, randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Upload } from 'tus-js-client';
import { beforeAll, expect, it } from 'vitest';
import type { Api } from '../client/api.ts';
import { createApplication, createKey, signUp, unique } from '../client/caller.ts';
import { listFiles, MIB } from '../client/files.ts';
import { installPython, WITH_PYTHON } from '../client/python.ts';

/** Clients of the protocol that others wrote, as judges of it. */
const bytes = randomBytes(12 * MIB);
const sha256 = createHash('sha256').update(bytes).digest('hex');

let api: Api;
let applicationId: string;
beforeAll(async () => {
  const owner = await signUp();
  applicationId = await createApplication(owner.session);
  api = (await createKey(owner)).api;
});

/** Starts an upload with tus-js-client, of another process where it has its URL. */
function start(fileName: string, uploadUrl?: string) {
  const ended = Promise.withResolvers<Upload>();
  const progressed = Promise.withResolvers<void>();
  const upload = new Upload(bytes, {
    endpoint: `${api.baseUrl}/api/v1/panel/uploads`,
    ...(uploadUrl && { uploadUrl }),
    chunkSize: 5 * MIB,
    retryDelays: [100, 1_000, 3_000],
    headers: api.headers,
    metadata: { applicationId, fileName, sha256, filename: 'ignored', filetype: 'application/zip' },
    onChunkComplete: () => progressed.resolve(),
    onError: ended.reject,
    onSuccess: () => ended.resolve(upload),
  });
  ended.promise.catch(() => undefined);
  upload.start();
  return { upload, ended: ended.promise, progressed: progressed.promise };
}

it('tus-js-client uploads a file, and another process continues what it aborted', async () => {
  const fileName = unique();
  const first = start(fileName);
  await first.progressed;
  await first.upload.abort();
  const second = start(fileName, first.upload.url as string);
  await second.ended;
  const file = (await listFiles(api, applicationId)).find(({ displayName }) => displayName === fileName);
  expect(file).toMatchObject({ byteSize: bytes.length, checksum: sha256 });
});

it('tus-js-client ends an upload', async () => {
  const { upload, progressed } = start(unique());
  await progressed;
  await upload.abort(true);
  expect((await api.get('/api/v1/panel/uploads')).data).toEqual([]);
});

const TUSPY = `
import sys
from tusclient import client
url, key, path, application, name, digest = sys.argv[1:]
tus = client.TusClient(url, headers={'Authorization': key})
uploader = tus.uploader(path, chunk_size=5 * 1024 * 1024, metadata={'applicationId': application, 'fileName': name, 'sha256': digest})
uploader.upload_chunk()
# Another process continues.
again = tus.uploader(path, chunk_size=5 * 1024 * 1024, url=uploader.url)
assert again.offset == 5 * 1024 * 1024, again.offset
again.upload()
`;

it('tuspy uploads a file, and continues it', WITH_PYTHON, async () => {
  const { dir, run } = await installPython('tuspy==1.1.0');
  await writeFile(join(dir, 'upload.py'), TUSPY);
  await writeFile(join(dir, 'content'), bytes);
  const [fileName, url] = [unique(), `${api.baseUrl}/api/v1/panel/uploads`];
  await run('python', ['upload.py', url, api.headers.authorization as string, 'content', applicationId, fileName, sha256]);
  const file = (await listFiles(api, applicationId)).find(({ displayName }) => displayName === fileName);
  expect(file).toMatchObject({ byteSize: bytes.length, checksum: sha256 });
});
