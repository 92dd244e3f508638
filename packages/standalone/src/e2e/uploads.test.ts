import { createHash } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Answer } from '../testing/api.ts';
import { createApplication, createKey, type Owner, signUp, unique } from '../testing/caller.ts';
import {
  CHECK_NAME,
  deleteFile,
  findFileId,
  listFiles,
  listNames,
  METADATA,
  MIB,
  outcome,
  renameFile,
  UPLOAD,
  upload,
} from '../testing/files.ts';
import { startUpload } from '../testing/running-upload.ts';

let owner: Owner;
let applicationId: string;
beforeAll(async () => {
  owner = await signUp();
  applicationId = await createApplication(owner.session);
});

const sha256 = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest();
const digestOf = (bytes: string) => `sha-256=:${sha256(bytes).toString('base64')}:`;

describe('the life of a file', () => {
  it('is seen in every answer about it', async () => {
    const { api } = await createKey(owner);
    const id = await createApplication(api);
    const metadata = async () => (await api.get(METADATA, { applicationId: id })).data;
    const check = (fileName: string) => api.post(CHECK_NAME, { fileName }, { applicationId: id });
    expect(await metadata()).toEqual({ totalFiles: 0, lastUploadedAt: null });
    expect(await check('setup-1.2.exe')).toMatchObject({ status: 200, message: 'File name available', data: undefined });

    const png = Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), Buffer.alloc(100)]);
    const checksum = sha256(png).toString('hex');
    const sentAt = Date.now();
    const uploaded = await upload(api, id, 'setup-1.2.exe', png);
    expect(uploaded).toMatchObject({ status: 200, message: 'File uploaded.' });
    const fileId = uploaded.data.id;
    expect(uploaded.data).toEqual({ id: expect.stringMatching(/^[0-9a-f-]{36}$/), byteSize: png.byteLength, checksum });

    const [row, ...others] = await listFiles(api, id);
    expect(others).toEqual([]);
    expect(row).toEqual({
      id: fileId,
      displayName: 'setup-1.2.exe',
      byteSize: png.byteLength,
      checksum,
      contentType: 'image/png',
      presignedUrlsCount: 0,
      lastPresignedUrlCreatedAt: null,
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      user: { username: owner.username },
    });
    expect(Math.abs(Date.parse(row?.createdAt ?? '') - sentAt)).toBeLessThan(10_000);
    expect(await metadata()).toEqual({ totalFiles: 1, lastUploadedAt: row?.createdAt });
    expect(outcome(await check('setup-1.2.exe'))).toBe('409 file_name_taken');

    expect(await renameFile(api, id, fileId, 'setup-1.3.exe')).toMatchObject({
      status: 200,
      message: 'Action completed successfully.',
    });
    expect(await listFiles(api, id)).toEqual([{ ...row, displayName: 'setup-1.3.exe' }]);
    expect(await metadata()).toEqual({ totalFiles: 1, lastUploadedAt: row?.createdAt });
    expect([outcome(await check('setup-1.2.exe')), outcome(await check('setup-1.3.exe'))]).toEqual([
      '200',
      '409 file_name_taken',
    ]);

    expect(await deleteFile(api, id, fileId)).toMatchObject({ status: 200, data: undefined });
    expect(await listFiles(api, id)).toEqual([]);
    expect(await metadata()).toEqual({ totalFiles: 0, lastUploadedAt: null });
    expect(outcome(await check('setup-1.3.exe'))).toBe('200');
    expect(outcome(await deleteFile(api, id, fileId))).toBe('404 not_found');
    expect(outcome(await renameFile(api, id, fileId, 'again'))).toBe('404 not_found');
  });

  it('does not end with a pause of its application, nor with its uploader’s session', async () => {
    const session = (await signUp()).session;
    const id = await createApplication(session);
    await session.patch('/api/v1/panel/update-application-settings', { field: 'status', value: 'paused' }, { applicationId: id });
    expect(outcome(await upload(session, id, 'while-paused'))).toBe('200');
    expect(await listNames(session, id)).toEqual(['while-paused']);
  });
});

/** Sends so many zero bytes from one buffer. */
async function uploadZeros(byteSize: number, headers: Record<string, string> = {}): Promise<Answer> {
  const running = await startUpload(owner.session, { applicationId, fileName: unique(), headers });
  const chunk = new Uint8Array(MIB);
  for (let left = byteSize; left > 0; left -= chunk.byteLength) await running.send(chunk.subarray(0, Math.min(left, MIB)));
  return running.finish();
}

describe('a file of', () => {
  it('one byte is stored', async () => {
    const { data } = await upload(owner.session, applicationId, unique(), 'x');
    expect(data).toMatchObject({ byteSize: 1, checksum: sha256('x').toString('hex') });
  });

  it('one MiB is stored', async () => {
    const bytes = new Uint8Array(MIB).fill(7);
    const { data } = await upload(owner.session, applicationId, unique(), bytes);
    expect(data).toMatchObject({ byteSize: MIB, checksum: sha256(bytes).toString('hex') });
  });

  it('exactly 150 MiB is stored, with its size said before', async () => {
    const { data } = await uploadZeros(150 * MIB, { 'content-length': String(150 * MIB) });
    expect(data.byteSize).toBe(150 * MIB);
    const hash = createHash('sha256');
    for (let i = 0; i < 150; i += 1) hash.update(new Uint8Array(MIB));
    expect(data.checksum).toBe(hash.digest('hex'));
    expect(outcome(await deleteFile(owner.session, applicationId, data.id))).toBe('200');
  });

  it('150 MiB and one byte is refused when the byte comes, and leaves nothing', async () => {
    const before = await listFiles(owner.session, applicationId);
    expect(outcome(await uploadZeros(150 * MIB + 1))).toBe('413 limit_exceeded');
    expect(await listFiles(owner.session, applicationId)).toEqual(before);
  });

  it('no bytes is refused, whether that is said before or found out', async () => {
    const fileName = unique();
    expect(outcome(await upload(owner.session, applicationId, fileName, ''))).toBe('400 invalid_file');
    const chunked = await startUpload(owner.session, { applicationId, fileName });
    expect(outcome(await chunked.finish())).toBe('400 invalid_file');
    const { headers, baseUrl } = owner.session;
    const query = new URLSearchParams({ applicationId, fileName });
    const bare = await fetch(`${baseUrl}${UPLOAD}?${query}`, { method: 'POST', headers });
    expect([bare.status, await bare.json()]).toEqual([400, expect.objectContaining({ code: 'invalid_file' })]);
    expect(outcome(await upload(owner.session, applicationId, fileName))).toBe('200');
  });
});

describe('Content-Digest', () => {
  const content = 'what was meant';
  const right = digestOf(content);
  const sha512 = `sha-512=:${createHash('sha512').update('something else').digest('base64')}:`;
  const send = (digest: string, fileName = unique()) =>
    upload(owner.session, applicationId, fileName, content, { 'content-digest': digest });

  it.each([
    ['that is right', right],
    ['with blanks around', `  ${right}  `],
    ['beside another algorithm, which is passed over', `${sha512}, ${right}`],
    ['of an algorithm that nobody knows', 'future-256=:AAAA:'],
    ['of SHA-512 alone', sha512],
    ['whose last is right', `${digestOf('wrong')}, ${right}`],
    ['with a parameter', `${right};a=1`],
    ['without padding', right.replace(/=:$/, ':')],
  ])('%s lets the file be stored', async (_what, digest) => {
    expect(outcome(await send(digest))).toBe('200');
  });

  it.each([
    ['of other bytes', digestOf('something else')],
    ['of no bytes', digestOf('')],
    ['whose last is wrong', `${right}, ${digestOf('wrong')}`],
  ])('%s lets nothing be stored, and the name stays free', async (_what, digest) => {
    const fileName = unique();
    expect(outcome(await send(digest, fileName))).toBe('400 invalid_file');
    expect(await listNames(owner.session, applicationId)).not.toContain(fileName);
    expect(outcome(await send(right, fileName))).toBe('200');
  });

  it.each([
    ['empty bytes', 'sha-256=::'],
    ['hex', `sha-256=:${sha256('x').toString('hex')}:`],
    ['too few bytes', 'sha-256=:AAAA:'],
    ['text', `sha-256="${sha256(content).toString('base64')}"`],
    ['no value', 'sha-256'],
    ['no dictionary', sha256(content).toString('base64')],
    ['a comma at the end', `${right},`],
    ['base64url', `sha-256=:${'-_'.repeat(21)}A=:`],
    ['capitals', right.replace('sha', 'SHA')],
    ['the older form', `SHA-256=${sha256(content).toString('base64')}`],
  ])('with %s is malformed', async (_what, digest) => {
    expect(outcome(await send(digest))).toBe('400 VALIDATION_ERROR');
  });
});

describe('the type of a file', () => {
  it.each([
    ['image/png', '89504e470d0a1a0a0000000d49484452000000010000000108060000'],
    ['application/zip', '504b03041400000008000000000000000000000000000000000000000000'],
    ['application/pdf', '255044462d312e370a'],
    ['application/octet-stream', '00'],
    ['application/octet-stream', Buffer.from('<script>alert(1)</script>').toString('hex')],
  ])('is told from its bytes: %s', async (contentType, hex) => {
    const { data } = await upload(owner.session, applicationId, unique(), Buffer.from(hex, 'hex'));
    const row = (await listFiles(owner.session, applicationId)).find(({ id }) => id === data.id);
    expect(row?.contentType).toBe(contentType);
  });
});

describe('the headers of an upload', () => {
  const send = (headers: Record<string, string>) => upload(owner.session, applicationId, unique(), 'bytes', headers);

  it.each(['application/octet-stream', 'APPLICATION/OCTET-STREAM', 'application/octet-stream; a=b'])(
    'may say that they are bytes: %j',
    async (type) => {
      expect(outcome(await send({ 'content-type': type }))).toBe('200');
    },
  );

  it('may say nothing of what they are', async () => {
    const { headers, baseUrl } = owner.session;
    const query = new URLSearchParams({ applicationId, fileName: unique() });
    const body = new Uint8Array(10);
    const answer = await fetch(`${baseUrl}${UPLOAD}?${query}`, { method: 'POST', headers, body });
    expect([answer.status, await answer.json()]).toEqual([200, expect.objectContaining({ success: true })]);
  });

  it.each([
    '',
    'application/json',
    'text/plain',
    'multipart/form-data; boundary=x',
    'application/x-www-form-urlencoded',
    'image/png',
    '*/*',
    'application/octet-streams',
  ])('may not say that they are anything else: %j', async (type) => {
    expect(outcome(await send({ 'content-type': type }))).toBe('415 VALIDATION_ERROR');
  });

  it('may not say that the bytes are compressed', async () => {
    for (const coding of ['gzip', 'br', 'deflate', 'zstd', 'x'])
      expect(outcome(await send({ 'content-encoding': coding }))).toBe('415 VALIDATION_ERROR');
    expect(outcome(await send({ 'content-encoding': 'identity' }))).toBe('200');
  });

  it('bring the token that a session needs, and no other origin', async () => {
    const { session } = owner;
    const fileName = unique();
    const refused = [
      await upload(session.with({ 'x-csrf-token': '' }), applicationId, fileName),
      await upload(session.with({ 'x-csrf-token': 'wrong' }), applicationId, fileName),
      await upload(session, applicationId, fileName, 'x', { origin: 'https://elsewhere.example' }),
    ];
    expect(refused.map(outcome)).toEqual(Array(3).fill('403 csrf_invalid'));
    expect(await listNames(session, applicationId)).not.toContain(fileName);
    expect(outcome(await upload((await createKey(owner)).api, applicationId, fileName))).toBe('200');
    expect(await findFileId(session, applicationId, fileName)).toMatch(/-/);
  });
});
