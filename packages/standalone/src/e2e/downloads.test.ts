import { beforeAll, describe, expect, inject, it } from 'vitest';
import { createApplication, type Owner, signUp } from '../testing/caller.ts';
import { deleteFile, type FileRow, listFiles, upload } from '../testing/files.ts';
import { SERVICE_CREDENTIAL } from '../testing/instance.ts';

const { filesUrl } = inject('latchkeyInstance');

/** Only other services are given URLs; in one process there are none, and nothing listens for them. */
describe.skipIf(filesUrl === undefined)('a download, in the shape in which other services can ask for it,', () => {
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

  /** Calls CreateDownloadUrl as another service does, in JSON. */
  const call = (message: object, credential = SERVICE_CREDENTIAL) =>
    fetch(`${filesUrl}/latchkey.files.v1.FileService/CreateDownloadUrl`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${credential}` },
      body: JSON.stringify(message),
    });
  const createUrl = async (fileId = file.id): Promise<string> => {
    const response = await call({ accountId: owner.accountId, applicationId, fileId });
    expect(response.status).toBe(200);
    return ((await response.json()) as { url: string }).url;
  };
  const bytesOf = async (response: Response) => Buffer.from(await response.arrayBuffer());

  it('goes through the gateway and gives the bytes, with what is known of them', async () => {
    const url = await createUrl();
    expect(new URL(url).port).toBe(String(inject('latchkeyInstance').port));
    const response = await fetch(url);
    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-length': String(content.byteLength),
      'content-type': 'application/octet-stream',
      'content-disposition': 'attachment; filename="setup-1.2.exe"',
      etag: `"${file.checksum}"`,
      'accept-ranges': 'bytes',
      'x-content-type-options': 'nosniff',
      'x-request-id': expect.any(String),
    });
    expect((await bytesOf(response)).equals(content)).toBe(true);
    const head = await fetch(url, { method: 'HEAD' });
    expect([head.status, head.headers.get('content-length'), (await bytesOf(head)).byteLength]).toEqual([200, '5000', 0]);
  });

  it.each([
    ['bytes=0-9', 0, 10],
    ['bytes=4990-', 4_990, 5_000],
    ['bytes=-5', 4_995, 5_000],
    ['bytes=4999-9999', 4_999, 5_000],
  ])('gives a part of them: %s', async (range, from, to) => {
    const response = await fetch(await createUrl(), { headers: { range } });
    expect([response.status, response.headers.get('content-range')]).toEqual([206, `bytes ${from}-${to - 1}/5000`]);
    expect((await bytesOf(response)).equals(content.subarray(from, to))).toBe(true);
  });

  it('says that there is no such part, and that what a client has is still good', async () => {
    const url = await createUrl();
    const beyond = await fetch(url, { headers: { range: 'bytes=5000-' } });
    expect([beyond.status, beyond.headers.get('content-range')]).toEqual([416, 'bytes */5000']);
    await beyond.body?.cancel();
    const known = await fetch(url, { headers: { 'if-none-match': `"${file.checksum}"` } });
    expect([known.status, await known.text()]).toEqual([304, '']);
    const changed = await fetch(url, { headers: { range: 'bytes=0-9', 'if-range': '"another"' } });
    expect([changed.status, (await bytesOf(changed)).byteLength]).toEqual([200, 5_000]);
  });

  it('is counted in the files table when its URL is made', async () => {
    const { data } = await upload(owner.session, applicationId, 'counted');
    const row = async () => (await listFiles(owner.session, applicationId)).find(({ id }) => id === data.id);
    expect(await row()).toMatchObject({ presignedUrlsCount: 0, lastPresignedUrlCreatedAt: null });
    const urls = [await createUrl(data.id), await createUrl(data.id)];
    for (const url of urls) await (await fetch(url)).body?.cancel();
    const counted = await row();
    expect(counted).toMatchObject({ presignedUrlsCount: 2, lastPresignedUrlCreatedAt: expect.stringMatching(/Z$/) });
    expect(Math.abs(Date.parse(counted?.lastPresignedUrlCreatedAt ?? '') - Date.now())).toBeLessThan(10_000);
  });

  it('ends with the file', async () => {
    const { data } = await upload(owner.session, applicationId, 'old-name');
    const url = await createUrl(data.id);
    expect((await fetch(url)).status).toBe(200);
    expect((await deleteFile(owner.session, applicationId, data.id)).status).toBe(200);
    const gone = await fetch(url);
    expect([gone.status, await gone.json()]).toEqual([404, expect.objectContaining({ success: false, code: 'not_found' })]);
  });

  it('ends with the application', async () => {
    const id = await createApplication(owner.session);
    const { data } = await upload(owner.session, id, 'doomed');
    const response = await call({ accountId: owner.accountId, applicationId: id, fileId: data.id });
    const { url } = (await response.json()) as { url: string };
    await owner.session.delete('/api/v1/panel/delete-application', { applicationId: id, code: '' });
    expect((await call({ accountId: owner.accountId, applicationId: id, fileId: data.id })).status).toBe(404);
    await expect.poll(async () => (await fetch(url)).status, { timeout: 5_000 }).toBe(404);
  });

  it('is refused for a URL that was changed, and for none', async () => {
    const url = await createUrl();
    const at = url.length - 10;
    const changed = `${url.slice(0, at)}${url[at] === 'a' ? 'b' : 'a'}${url.slice(at + 1)}`;
    for (const other of [changed, `${url}a`, url.slice(0, -1), new URL('/downloads/x', url).href]) {
      const response = await fetch(other);
      expect([response.status, await response.json()], other).toEqual([404, expect.objectContaining({ code: 'not_found' })]);
    }
  });

  it('is for whoever has the service’s credential to give, and for files of the account', async () => {
    const mine = { accountId: owner.accountId, applicationId, fileId: file.id };
    expect((await call(mine, 'a-credential-that-nobody-has-been-given')).status).toBe(401);
    const stranger = await signUp();
    expect((await call({ ...mine, accountId: stranger.accountId })).status).toBe(404);
    expect((await call({ ...mine, fileId: 'abc' })).status).toBe(404);
  });
});

describe.runIf(filesUrl === undefined)('where all is one process', () => {
  it('no URL can be asked for from outside', async () => {
    const { baseUrl } = inject('latchkeyInstance');
    const response = await fetch(`${baseUrl}/latchkey.files.v1.FileService/CreateDownloadUrl`, { method: 'POST' });
    expect(response.status).toBe(404);
  });
});
