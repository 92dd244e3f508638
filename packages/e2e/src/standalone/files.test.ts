import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '@latchkey/testkit/eventually';
import { expect, inject, it } from 'vitest';
import { createApplication, createKey, signUp } from '../client/caller.ts';
import { CHECK_NAME, deleteFile, listFiles, METADATA, outcome, renameFile, TABLE, upload } from '../client/files.ts';
import { startUpload } from '../client/running-upload.ts';

const { objectsDir } = inject('latchkeyInstance');

it('the deletion of an application makes its files unknown on the next request, and removes their objects', async () => {
  const { session } = await signUp();
  const id = await createApplication(session);
  const file = (await upload(session, id, 'a-file')).data.id;
  const running = await startUpload(session, { applicationId: id, fileName: 'doomed' });
  await running.send(Buffer.alloc(300_000));
  expect(outcome(await session.delete('/api/v1/panel/delete-application', { applicationId: id, code: '' }))).toBe('200');
  expect(outcome(await running.finish())).toBe('404 not_found');
  const answers = [
    ...[await session.get(TABLE, { applicationId: id }), await session.get(METADATA, { applicationId: id })],
    ...[await upload(session, id, 'another'), await deleteFile(session, id, file), await renameFile(session, id, file, 'x')],
  ];
  expect(answers.map(outcome)).toEqual(Array(5).fill('404 not_found'));
  // Objects are deleted by a queue's next job.
  const removed = async () => {
    expect(await readdir(join(objectsDir, 'objects'))).not.toContain(id);
    expect((await readdir(join(objectsDir, 'tmp'))).filter((name) => name.includes(id))).toEqual([]);
  };
  await eventually(removed, { timeoutMs: 15_000 });
});

it('the life of a file has the messages and fields of the specification, and no others', async () => {
  const owner = await signUp();
  const { api } = await createKey(owner);
  const id = await createApplication(api);
  const metadata = async () => (await api.get(METADATA, { applicationId: id })).data;
  const check = (fileName: string) => api.post(CHECK_NAME, { fileName }, { applicationId: id });
  // Uploads do not depend on the status of the application.
  await api.patch('/api/v1/panel/update-application-settings', { field: 'status', value: 'paused' }, { applicationId: id });

  const png = Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), Buffer.alloc(100)]);
  const checksum = createHash('sha256').update(png).digest('hex');
  const uploaded = await upload(api, id, 'setup-1.2.exe', png);
  expect(uploaded).toMatchObject({ status: 200, message: 'File uploaded.' });
  expect(uploaded.data).toEqual({ id: expect.stringMatching(/^[0-9a-f-]{36}$/), byteSize: png.byteLength, checksum });
  const fileId = uploaded.data.id;
  const row = {
    id: fileId,
    displayName: 'setup-1.2.exe',
    byteSize: png.byteLength,
    checksum,
    contentType: 'image/png',
    presignedUrlsCount: 0,
    lastPresignedUrlCreatedAt: null,
    createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    user: { username: owner.username },
  };
  const found = await listFiles(api, id);
  expect(found).toEqual([row]);
  expect(outcome(await check('setup-1.2.exe'))).toBe('409 file_name_taken');
  const searchParams = JSON.stringify({ searchString: 'P-1.2.E', categories: ['Name'] });
  const searched = await api.get(TABLE, { applicationId: id, currentPage: '1', searchParams });
  expect([searched.message, searched.data, searched.totalPages]).toEqual(['Successfully fetched table', found, 1]);

  expect(await renameFile(api, id, fileId, 'setup-1.3.exe')).toMatchObject({ message: 'Action completed successfully.' });
  expect(await listFiles(api, id)).toEqual([{ ...found[0], displayName: 'setup-1.3.exe' }]);
  expect(await metadata()).toEqual({ totalFiles: 1, lastUploadedAt: found[0]?.createdAt });
  expect((await check('setup-1.2.exe')).message).toBe('File name available');
  expect(await deleteFile(api, id, fileId)).toMatchObject({ status: 200, data: undefined });
  expect([await listFiles(api, id), await metadata()]).toEqual([[], { totalFiles: 0, lastUploadedAt: null }]);
  expect(outcome(await deleteFile(api, id, fileId))).toBe('404 not_found');
});
