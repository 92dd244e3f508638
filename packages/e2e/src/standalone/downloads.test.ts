import { expect, inject, it } from 'vitest';
import { createApplication, signUp } from '../client/caller.ts';
import { listFiles, outcome, replaceFile, upload } from '../client/files.ts';

const CREATE_URL = '/api/v1/panel/create-download-url';
const { port } = inject('latchkeyInstance');

it('a download goes through the gateway, gives the bytes or a part of them, and ends with the application', async () => {
  const { session } = await signUp();
  const applicationId = await createApplication(session);
  const content = Buffer.from(Array.from({ length: 5_000 }, (_, i) => i % 251));
  await upload(session, applicationId, 'setup-1.2.exe', content);
  const [file] = await listFiles(session, applicationId);
  const create = (body: object = {}) => session.post(CREATE_URL, { fileId: file?.id, ...body }, { applicationId });
  const beforeMs = Date.now();
  const { message, data } = await create({ lifetimeSeconds: 3_600 });
  expect([message, Object.keys(data)]).toEqual(['Download URL created.', ['url', 'expiresAt']]);
  const lifetimeMs = Date.parse(data.expiresAt) - beforeMs;
  expect(lifetimeMs).toBeGreaterThanOrEqual(3_600_000);
  expect(lifetimeMs).toBeLessThan(3_660_000);
  for (const lifetimeSeconds of [29, 3_601, 60.5, '60', null])
    expect(outcome(await create({ lifetimeSeconds }))).toBe('400 VALIDATION_ERROR');
  const [counted] = await listFiles(session, applicationId);
  expect(counted).toMatchObject({ presignedUrlsCount: 1, lastPresignedUrlCreatedAt: expect.any(String) });

  const bytesOf = async (response: Response) => Buffer.from(await response.arrayBuffer());
  expect(new URL(data.url).port).toBe(String(port));
  const response = await fetch(data.url);
  expect([response.status, (await bytesOf(response)).equals(content)]).toEqual([200, true]);
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-length': '5000',
    'content-type': 'application/octet-stream',
    'content-disposition': 'attachment; filename="setup-1.2.exe"',
    etag: `"${file?.checksum}"`,
    'accept-ranges': 'bytes',
    'x-content-type-options': 'nosniff',
    'x-request-id': expect.any(String),
  });
  const part = await fetch(data.url, { headers: { range: 'bytes=-5' } });
  expect([part.status, part.headers.get('content-range')]).toEqual([206, 'bytes 4995-4999/5000']);
  expect((await bytesOf(part)).equals(content.subarray(4_995))).toBe(true);
  const unknown = await fetch(new URL('/downloads/x', data.url));
  expect([unknown.status, await unknown.json()]).toEqual([404, expect.objectContaining({ success: false, code: 'not_found' })]);

  await session.delete('/api/v1/panel/delete-application', { applicationId, code: '' });
  await expect.poll(async () => (await fetch(data.url)).status, { timeout: 5_000 }).toBe(404);
});

it('a replacement gives a file other bytes under its id', async () => {
  const { session } = await signUp();
  const applicationId = await createApplication(session);
  const { data } = await upload(session, applicationId, 'setup', 'old bytes');
  expect(outcome(await replaceFile(session, applicationId, 'setup', 'new', 'false'))).toBe('409 file_name_taken');
  expect(outcome(await replaceFile(session, applicationId, 'setup', 'new', 'yes'))).toBe('400 VALIDATION_ERROR');
  const replaced = await replaceFile(session, applicationId, 'setup', 'new bytes');
  expect(replaced).toMatchObject({ status: 200, data: { id: data.id, byteSize: 9 } });
  expect(await listFiles(session, applicationId)).toMatchObject([{ id: data.id, checksum: replaced.data.checksum }]);
});
