import { beforeAll, describe, expect, inject, it } from 'vitest';
import { createApplication, type Owner, signUp } from '../testing/caller.ts';
import { deleteFile, type FileRow, listFiles, upload } from '../testing/files.ts';
import { SERVICE_CREDENTIAL } from '../testing/instance.ts';

const { filesUrl, baseUrl, port } = inject('latchkeyInstance');

/** Only other services get URLs; in one process nothing listens for them. */
describe.skipIf(filesUrl === undefined)('a download', () => {
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
  const call = (change: object = {}, credential = SERVICE_CREDENTIAL) =>
    fetch(`${filesUrl}/latchkey.files.v1.FileService/CreateDownloadUrl`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${credential}` },
      body: JSON.stringify({ accountId: owner.accountId, applicationId, fileId: file.id, ...change }),
    });
  const createUrl = async (change?: object): Promise<string> => ((await (await call(change)).json()) as { url: string }).url;
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
    const doomed = { applicationId: id, fileId: (await upload(owner.session, id, 'doomed')).data.id };
    const doomedUrl = await createUrl(doomed);
    await owner.session.delete('/api/v1/panel/delete-application', { applicationId: id, code: '' });
    expect((await call(doomed)).status).toBe(404);
    await expect.poll(async () => (await fetch(doomedUrl)).status, { timeout: 5_000 }).toBe(404);
  });

  it('is refused for a URL that was changed, and without a right to make one', async () => {
    const url = await createUrl();
    const at = url.length - 10;
    const changed = `${url.slice(0, at)}${url[at] === 'a' ? 'b' : 'a'}${url.slice(at + 1)}`;
    for (const other of [changed, `${url}a`, url.slice(0, -1), new URL('/downloads/x', url).href]) {
      const response = await fetch(other);
      expect([response.status, await response.json()], other).toEqual([404, expect.objectContaining({ code: 'not_found' })]);
    }
    expect((await call({}, 'a-credential-that-no-one-has')).status).toBe(401);
    for (const change of [{ accountId: (await signUp()).accountId }, { fileId: 'abc' }])
      expect((await call(change)).status).toBe(404);
  });
});

it.runIf(filesUrl === undefined)('in one process, no URL can be asked for from outside', async () => {
  const response = await fetch(`${baseUrl}/latchkey.files.v1.FileService/CreateDownloadUrl`, { method: 'POST' });
  expect(response.status).toBe(404);
});
