import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '@latchkey/testkit/eventually';
import { beforeAll, expect, inject, it } from 'vitest';
import type { Api } from '../client/api.ts';
import { createApplication, createKey, signUp } from '../client/caller.ts';
import { CHECK_NAME, deleteFile, listFiles, METADATA, MIB, outcome, renameFile, TABLE, upload } from '../client/files.ts';
import { startUpload } from '../client/running-upload.ts';

/** Objects of an application are deleted by a queue's next job. */
const CLEAN_UP = { timeoutMs: 15_000 };
const LIMITS = '/api/v1/panel/get-account-limits';

let api: Api;
beforeAll(async () => {
  api = (await signUp()).session;
});

const { objectsDir } = inject('latchkeyInstance');
const remove = (session: Api, applicationId: string) =>
  session.delete('/api/v1/panel/delete-application', { applicationId, code: '' });

it('the deletion of an application makes its files unknown on the next request, and removes their objects', async () => {
  const id = await createApplication(api);
  const file = (await upload(api, id, 'a-file')).data.id;
  const running = await startUpload(api, { applicationId: id, fileName: 'doomed' });
  await running.send(Buffer.alloc(300_000));
  expect(outcome(await remove(api, id))).toBe('200');
  expect(outcome(await running.finish())).toBe('404 not_found');
  const table = [
    await api.get(TABLE, { applicationId: id }),
    await api.get(METADATA, { applicationId: id }),
    await upload(api, id, 'another'),
  ];
  const actions = [await deleteFile(api, id, file), await renameFile(api, id, file, 'renamed')];
  expect([...table, ...actions].map(outcome)).toEqual(Array(5).fill('404 not_found'));
  await eventually(async () => {
    expect(await readdir(join(objectsDir, 'objects'))).not.toContain(id);
    expect((await readdir(join(objectsDir, 'tmp'))).filter((name) => name.includes(id))).toEqual([]);
  }, CLEAN_UP);
});

it('get-account-limits reports what the account has and may have, to a key and to a session', async () => {
  const owner = await signUp();
  const { api: key } = await createKey(owner, {
    scopes: ['account:read'],
    applicationIds: [await createApplication(owner.session)],
  });
  const { status, data, message } = await key.get(LIMITS);
  expect([status, message]).toEqual([200, 'Successfully fetched account limits']);
  expect(data).toEqual({
    planName: 'Self-hosted',
    storageSizeMib: { currentValue: 0, maxValue: 1_024 },
    uploadedFilesCount: { currentValue: 0, maxValue: 100 },
    createdApplicationsCount: { currentValue: 1, maxValue: 200 },
    apiKeyCount: { currentValue: 1, maxValue: 20 },
    fileSizeMiB: 150,
  });
  const { session } = owner;
  const [first, second] = [await createApplication(session), await createApplication(session)];
  for (const [id, name, size] of [
    [first, 'small', 1],
    [first, 'large', 3 * MIB - 1],
    [second, 'other', 1],
  ] as const)
    await upload(session, id, name, Buffer.alloc(size));
  const values = async () =>
    Object.values((await session.get(LIMITS)).data).flatMap((value) => (value as { currentValue?: number }).currentValue ?? []);
  expect(await values()).toEqual([4, 3, 3, 1]);
  await remove(session, second);
  expect(await values()).toEqual([3, 2, 2, 1]);
});

it('the life of a file is seen in every response about it', async () => {
  const owner = await signUp();
  const { api } = await createKey(owner);
  const id = await createApplication(api);
  const metadata = async () => (await api.get(METADATA, { applicationId: id })).data;
  const check = async (fileName: string) => outcome(await api.post(CHECK_NAME, { fileName }, { applicationId: id }));
  expect(await metadata()).toEqual({ totalFiles: 0, lastUploadedAt: null });
  // Uploads do not depend on the status of the application.
  await api.patch('/api/v1/panel/update-application-settings', { field: 'status', value: 'paused' }, { applicationId: id });

  const png = Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), Buffer.alloc(100)]);
  const checksum = createHash('sha256').update(png).digest('hex');
  const uploaded = await upload(api, id, 'setup-1.2.exe', png);
  expect(uploaded).toMatchObject({ status: 200, message: 'File uploaded.' });
  expect(uploaded.data).toEqual({ id: expect.stringMatching(/^[0-9a-f-]{36}$/), byteSize: png.byteLength, checksum });
  const fileId = uploaded.data.id;
  const [row, ...others] = await listFiles(api, id);
  expect([row, others]).toEqual([
    {
      id: fileId,
      displayName: 'setup-1.2.exe',
      byteSize: png.byteLength,
      checksum,
      contentType: 'image/png',
      presignedUrlsCount: 0,
      lastPresignedUrlCreatedAt: null,
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      user: { username: owner.username },
    },
    [],
  ]);
  expect(Math.abs(Date.parse(row?.createdAt ?? '') - Date.now())).toBeLessThan(60_000);
  expect(await check('setup-1.2.exe')).toBe('409 file_name_taken');

  const search = async (searchString: string) => {
    const query = { applicationId: id, currentPage: '1', searchParams: JSON.stringify({ searchString, categories: ['Name'] }) };
    const { data, totalPages } = await api.get(TABLE, query);
    return [data.length, totalPages];
  };
  expect([await search('P-1.2.E'), await search('%')]).toEqual([
    [1, 1],
    [0, 0],
  ]);

  expect(await renameFile(api, id, fileId, 'setup-1.3.exe')).toMatchObject({ message: 'Action completed successfully.' });
  expect(await listFiles(api, id)).toEqual([{ ...row, displayName: 'setup-1.3.exe' }]);
  expect(await metadata()).toEqual({ totalFiles: 1, lastUploadedAt: row?.createdAt });
  expect([await check('setup-1.2.exe'), await check('setup-1.3.exe')]).toEqual(['200', '409 file_name_taken']);

  expect(await deleteFile(api, id, fileId)).toMatchObject({ status: 200, data: undefined });
  expect([await listFiles(api, id), await metadata()]).toEqual([[], { totalFiles: 0, lastUploadedAt: null }]);
  expect(await check('setup-1.3.exe')).toBe('200');
  expect(outcome(await deleteFile(api, id, fileId))).toBe('404 not_found');
  expect(outcome(await renameFile(api, id, fileId, 'again'))).toBe('404 not_found');
});
