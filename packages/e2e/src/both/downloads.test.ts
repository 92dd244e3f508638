import { beforeAll, describe, expect, inject, it } from 'vitest';
import { createApplication, createKey, type Owner, signUp } from '../client/caller.ts';
import { deleteFile, type FileRow, listFiles, outcome, replaceFile, upload } from '../client/files.ts';

const RELEASES = '/api/v1/panel/releases';
const CREATE_URL = '/api/v1/panel/create-download-url';
const { port } = inject('latchkeyInstance');

describe('a download', () => {
  const content = Buffer.from(Array.from({ length: 5_000 }, (_, i) => i % 251));
  let owner: Owner;
  let applicationId: string;
  let file: FileRow;
  beforeAll(async () => {
    owner = await signUp();
    applicationId = await createApplication(owner.session);
    await upload(owner.session, applicationId, 'setup-1.2.exe', content);
    [file] = (await listFiles(owner.session, applicationId)) as [FileRow];
  });

  const create = (body: object = {}, named = applicationId) =>
    owner.session.post(CREATE_URL, { fileId: file.id, ...body }, { applicationId: named });
  const createUrl = async (...args: Parameters<typeof create>): Promise<string> => (await create(...args)).data.url;
  const bytesOf = async (response: Response) => Buffer.from(await response.arrayBuffer());

  it('goes through the gateway and gives the bytes, or a part of them', async () => {
    const url = await createUrl();
    expect(new URL(url).port).toBe(String(port));
    const response = await fetch(url);
    expect([response.status, (await bytesOf(response)).equals(content)]).toEqual([200, true]);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-length': '5000',
      'content-type': 'application/octet-stream',
      'content-disposition': 'attachment; filename="setup-1.2.exe"',
      etag: `"${file.checksum}"`,
      'accept-ranges': 'bytes',
      'x-content-type-options': 'nosniff',
      'x-request-id': expect.any(String),
    });
    const part = await fetch(url, { headers: { range: 'bytes=-5' } });
    expect([part.status, part.headers.get('content-range')]).toEqual([206, 'bytes 4995-4999/5000']);
    expect((await bytesOf(part)).equals(content.subarray(4_995))).toBe(true);
  });

  it('ends with the file, and with the application', async () => {
    const { data } = await upload(owner.session, applicationId, 'old-name');
    const url = await createUrl({ fileId: data.id });
    expect((await deleteFile(owner.session, applicationId, data.id)).status).toBe(200);
    const gone = await fetch(url);
    expect([gone.status, await gone.json()]).toEqual([404, expect.objectContaining({ success: false, code: 'not_found' })]);
    const id = await createApplication(owner.session);
    const { data: doomed } = await upload(owner.session, id, 'doomed');
    const doomedUrl = await createUrl({ fileId: doomed.id }, id);
    await owner.session.delete('/api/v1/panel/delete-application', { applicationId: id, code: '' });
    expect(outcome(await create({ fileId: doomed.id }, id))).toBe('404 not_found');
    await expect.poll(async () => (await fetch(doomedUrl)).status, { timeout: 5_000 }).toBe(404);
  });

  it('outlives the key that created its URL, as docs/files.md says', async () => {
    const key = await createKey(owner);
    const { data } = await key.api.post(CREATE_URL, { fileId: file.id }, { applicationId });
    expect(outcome(await owner.session.post(`/api/v1/panel/api-keys/${key.id}/revoke`))).toBe('200');
    expect(outcome(await key.api.post(CREATE_URL, { fileId: file.id }, { applicationId }))).toBe('401 api_key_revoked');
    expect((await fetch(data.url)).status).toBe(200);
  });

  it('is rejected for a URL that was changed', async () => {
    const url = await createUrl();
    const at = url.length - 10;
    const changed = `${url.slice(0, at)}${url[at] === 'a' ? 'b' : 'a'}${url.slice(at + 1)}`;
    for (const other of [changed, `${url}a`, url.slice(0, -1), new URL('/downloads/x', url).href]) {
      const response = await fetch(other);
      expect([response.status, await response.json()], other).toEqual([404, expect.objectContaining({ code: 'not_found' })]);
    }
  });

  it('has a URL for 300 seconds or as long as requested, which the file counts', async () => {
    const { data } = await upload(owner.session, applicationId, 'counted');
    const row = async () => (await listFiles(owner.session, applicationId)).find(({ id }) => id === data.id);
    for (const [lifetimeSeconds, seconds] of [
      [undefined, 300],
      [30, 30],
      [3_600, 3_600],
    ]) {
      const before = Date.now();
      const { message, data: created } = await create({ fileId: data.id, lifetimeSeconds });
      expect([message, Object.keys(created)]).toEqual(['Download URL created.', ['url', 'expiresAt']]);
      const startMs = Date.parse(created.expiresAt) - (seconds as number) * 1_000;
      expect(startMs).toBeGreaterThanOrEqual(before);
      expect(startMs).toBeLessThanOrEqual(Date.now());
    }
    for (const lifetimeSeconds of [29, 3_601, 60.5, '60', null])
      expect(outcome(await create({ fileId: data.id, lifetimeSeconds }))).toBe('400 VALIDATION_ERROR');
    for (const fileId of [(await signUp()).accountId, 'abc', ''])
      expect(outcome(await create({ fileId })), fileId).toBe('404 not_found');
    expect(await row()).toMatchObject({ presignedUrlsCount: 3, lastPresignedUrlCreatedAt: expect.any(String) });
  });
});

describe('a replacement', () => {
  it('gives a file other bytes under its id, and ends its URLs', async () => {
    const { session } = await signUp();
    const applicationId = await createApplication(session);
    const { data } = await upload(session, applicationId, 'setup', 'old bytes');
    const createUrl = async () => (await session.post(CREATE_URL, { fileId: data.id }, { applicationId })).data.url as string;
    const former = await createUrl();
    expect(outcome(await replaceFile(session, applicationId, 'setup', 'new', 'false'))).toBe('409 file_name_taken');
    expect(outcome(await replaceFile(session, applicationId, 'setup', 'new', 'yes'))).toBe('400 VALIDATION_ERROR');
    const replaced = await replaceFile(session, applicationId, 'setup', 'new bytes');
    expect(replaced).toMatchObject({ status: 200, data: { id: data.id, byteSize: 9 } });
    expect(await listFiles(session, applicationId)).toMatchObject([{ id: data.id, checksum: replaced.data.checksum }]);
    expect([(await fetch(former)).status, await (await fetch(await createUrl())).text()]).toEqual([404, 'new bytes']);
    const free = await replaceFile(session, applicationId, 'free', 'bytes');
    expect([free.status, free.data.id === data.id]).toEqual([200, false]);
  });

  it('needs the scope of uploads alone, and no published release with the file', async () => {
    const owner = await signUp();
    const applicationId = await createApplication(owner.session);
    const { data } = await upload(owner.session, applicationId, 'setup', 'old bytes');
    const uploader = (await createKey(owner, { scopes: ['files:upload'] })).api;
    expect(outcome(await replaceFile(uploader, applicationId, 'setup', 'new'))).toBe('200');
    const artifact = { fileId: data.id, name: 'Setup', platform: 'windows', arch: 'x86_64', kind: 'exe' };
    const draft = await owner.session.post(RELEASES, { version: '2.0.0', artifacts: [artifact] }, { applicationId });
    expect(outcome(await replaceFile(owner.session, applicationId, 'setup', 'new bytes'))).toBe('200');
    expect(outcome(await owner.session.post(`${RELEASES}/${draft.data.id}/publish`))).toBe('200');
    expect(outcome(await replaceFile(owner.session, applicationId, 'setup', 'newer'))).toBe('409 file_in_use');
    expect(await listFiles(owner.session, applicationId)).toMatchObject([{ id: data.id, byteSize: 9 }]);
  });
});
