import { createHash } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Answer } from '../client/api.ts';
import { createApplication, createKey, type Owner, signUp, unique } from '../client/caller.ts';
import { CHECK_NAME, deleteFile, listFiles, METADATA, MIB, outcome, renameFile, TABLE, upload } from '../client/files.ts';
import { startUpload } from '../client/running-upload.ts';

let owner: Owner;
let applicationId: string;
beforeAll(async () => {
  owner = await signUp();
  applicationId = await createApplication(owner.session);
});

const sha256 = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest();
const send = (headers: Record<string, string>, fileName = unique(), content = 'bytes') =>
  upload(owner.session, applicationId, fileName, content, headers);

it('the life of a file is seen in every response about it', async () => {
  const { api } = await createKey(owner);
  const id = await createApplication(api);
  const metadata = async () => (await api.get(METADATA, { applicationId: id })).data;
  const check = async (fileName: string) => outcome(await api.post(CHECK_NAME, { fileName }, { applicationId: id }));
  expect(await metadata()).toEqual({ totalFiles: 0, lastUploadedAt: null });
  // Uploads do not depend on the status of the application.
  await api.patch('/api/v1/panel/update-application-settings', { field: 'status', value: 'paused' }, { applicationId: id });

  const png = Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), Buffer.alloc(100)]);
  const checksum = sha256(png).toString('hex');
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

describe('a file of', () => {
  /** Sends this many zero bytes from one buffer. */
  async function uploadZeros(byteSize: number, headers: Record<string, string> = {}): Promise<Answer> {
    const running = await startUpload(owner.session, { applicationId, fileName: unique(), headers });
    const chunk = new Uint8Array(MIB);
    for (let left = byteSize; left > 0; left -= MIB) await running.send(chunk.subarray(0, Math.min(left, MIB)));
    return running.finish();
  }

  it('one byte, and exactly 150 MiB, is stored', async () => {
    expect((await upload(owner.session, applicationId, unique(), 'x')).data.byteSize).toBe(1);
    const { data } = await uploadZeros(150 * MIB, { 'content-length': String(150 * MIB) });
    const hash = createHash('sha256');
    for (let i = 0; i < 150; i += 1) hash.update(new Uint8Array(MIB));
    expect(data).toMatchObject({ byteSize: 150 * MIB, checksum: hash.digest('hex') });
    await deleteFile(owner.session, applicationId, data.id);
  });

  it('150 MiB and one byte is rejected when the byte comes, and stores nothing', async () => {
    const before = await listFiles(owner.session, applicationId);
    expect(outcome(await uploadZeros(150 * MIB + 1))).toBe('413 limit_exceeded');
    expect(await listFiles(owner.session, applicationId)).toEqual(before);
  });

  it('no bytes is rejected, whether that is announced or found out', async () => {
    const fileName = unique();
    expect(outcome(await upload(owner.session, applicationId, fileName, ''))).toBe('400 invalid_file');
    expect(outcome(await (await startUpload(owner.session, { applicationId, fileName })).finish())).toBe('400 invalid_file');
    expect(outcome(await upload(owner.session, applicationId, fileName))).toBe('200');
  });
});

it('a file whose bytes do not match the Content-Digest is not stored; one of another algorithm is ignored', async () => {
  const fileName = unique();
  const [right, other] = ['bytes', 'something else'].map((text) => `sha-256=:${sha256(text).toString('base64')}:`);
  const put = async (digest: string, name = unique()) => outcome(await send({ 'content-digest': digest }, name));
  for (const digest of [other, `${right}, ${other}`]) expect(await put(digest as string, fileName)).toBe('400 invalid_file');
  expect(await put(right as string, fileName)).toBe('200');
  const sha512 = `sha-512=:${createHash('sha512').update('something else').digest('base64')}:`;
  for (const digest of [
    sha512,
    'future-256=:AAAA:',
    `${sha512}, ${right};a=1`,
    `${other}, ${right}`,
    `${right}`.replace(/=:$/, ':'),
  ])
    expect(await put(digest), digest).toBe('200');
});

it('an upload may have no content type or that of bytes, and no other', async () => {
  for (const type of ['application/octet-stream', 'APPLICATION/OCTET-STREAM', 'application/octet-stream; a=b'])
    expect(outcome(await send({ 'content-type': type })), type).toBe('200');
  for (const type of ['', 'application/json', 'multipart/form-data; boundary=x', '*/*', 'application/octet-streams'])
    expect(outcome(await send({ 'content-type': type })), type).toBe('415 VALIDATION_ERROR');
  for (const coding of ['gzip', 'x']) expect(outcome(await send({ 'content-encoding': coding }))).toBe('415 VALIDATION_ERROR');
  expect(outcome(await send({ 'content-encoding': 'identity' }))).toBe('200');
});

describe('while an upload of an account is running', () => {
  it('no other of that account begins, by whatever key or session, and the response says when to try again', async () => {
    const other = await signUp();
    const [first, second] = [await createApplication(other.session), await createApplication(other.session)];
    const running = await startUpload(other.session, { applicationId: first, fileName: 'first' });
    const callers = [other.session, (await createKey(other)).api, (await createKey(other, { applicationIds: [second] })).api];
    for (const caller of callers) {
      const answer = await upload(caller, second, unique());
      const retryAfter = Number(answer.headers.get('retry-after'));
      expect([outcome(answer), answer.headers.get('ratelimit-policy')]).toEqual([
        '429 rate_limit_reached',
        '"uploads-at-once";q=1;w=180',
      ]);
      expect(answer.headers.get('ratelimit')).toBe(`"uploads-at-once";r=0;t=${retryAfter}`);
      expect(retryAfter).toBeLessThanOrEqual(180);
    }
    // Another account is not affected.
    expect(outcome(await upload(owner.session, applicationId, unique()))).toBe('200');
    await running.send(Buffer.from('first'));
    expect(outcome(await running.finish())).toBe('200');
    for (const [i, caller] of callers.entries()) expect(outcome(await upload(caller, second, `after-${i}`))).toBe('200');
  });

  it('its name may be taken by a rename, and then it fails', async () => {
    const id = await createApplication(owner.session);
    const { data } = await upload(owner.session, id, 'before');
    const running = await startUpload(owner.session, { applicationId: id, fileName: 'wanted' });
    expect(outcome(await renameFile(owner.session, id, data.id, 'wanted'))).toBe('200');
    await running.send(Buffer.from('late'));
    expect(outcome(await running.finish())).toBe('409 file_name_taken');
    expect((await listFiles(owner.session, id)).map((row) => row.id)).toEqual([data.id]);
  });
});

it('fifty uploads of one name at the same time leave one file; so do deletions and renames', async () => {
  const other = await signUp();
  const id = await createApplication(other.session);
  const callers = [other.session, (await createKey(other)).api];
  const put = (i: number) => upload(callers[i % 2] ?? other.session, id, 'one-name', `content ${i}`);
  const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => put(i)));
  const [stored, ...more] = answers.filter(({ status }) => status === 200);
  for (const text of answers.map(outcome)) expect(['200', '429 rate_limit_reached', '409 file_name_taken']).toContain(text);
  const rows = await listFiles(other.session, id);
  expect([more, rows.map((row) => [row.id, row.checksum])]).toEqual([[], [[stored?.data.id, stored?.data.checksum]]]);
  const second = (await upload(other.session, id, 'another')).data.id;
  const renames = await Promise.all([rows[0]?.id ?? '', second].map((file) => renameFile(other.session, id, file, 'the-one')));
  expect(renames.map(outcome).sort()).toEqual(['200', '409 file_name_taken']);
  const deletions = await Promise.all(Array.from({ length: 10 }, () => deleteFile(other.session, id, second)));
  expect(deletions.map(outcome).sort()).toEqual(['200', ...Array(9).fill('404 not_found')]);
});
