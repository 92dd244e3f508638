import { createHash, randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { newId } from '@latchkey/kit/id';
import { statementsOf } from '@latchkey/testkit/statements';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type DownloadServer, REQUEST_ID, startDownloadServer } from '../../testing/download-server.ts';
import { storeFile } from '../../testing/stored-file.ts';
import { SECRET_KEY, startTestFiles, type TestFiles } from '../../testing/test-files.ts';
import { createDownloadHandler } from './download-handler.ts';
import { createDownloadUrls } from './download-url.ts';

const BYTES = randomBytes(300_000);
const ETAG = `"${createHash('sha256').update(BYTES).digest('hex')}"`;
const LIFETIME_MS = 60_000;
const downloadUrls = createDownloadUrls({ secretKey: SECRET_KEY, publicUrl: 'http://localhost' });

let files: TestFiles;
let server: DownloadServer;
beforeAll(async () => {
  files = await startTestFiles();
  server = await startDownloadServer(createDownloadHandler({ ...files.ctx, downloadUrls }));
});
afterAll(async () => {
  await server.close();
  await files.stop();
});

const urlFor = (id: string) => downloadUrls.create(id, new Date(files.clock.now().getTime() + LIFETIME_MS));

let url: string;
let id: string;
let ref: ReturnType<TestFiles['createOwned']>;
beforeEach(async () => {
  ref = files.createOwned();
  id = await storeFile(files, ref, { name: 'setup.v2 x64', bytes: BYTES, contentType: 'image/svg+xml' });
  url = urlFor(id);
});

describe('a download', () => {
  it('gives the bytes with what is known of them, to be saved and never shown or run', async () => {
    const { status, headers, body } = await server.fetch(url);
    expect(status).toBe(200);
    expect(body.equals(BYTES)).toBe(true);
    expect(headers).toMatchObject({
      etag: ETAG,
      'accept-ranges': 'bytes',
      'content-type': 'image/svg+xml',
      'content-length': String(BYTES.byteLength),
      'content-disposition': 'attachment; filename="setup.v2 x64"',
      'last-modified': 'Tue, 12 May 2026 09:00:00 GMT',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "sandbox; default-src 'none'",
      'cache-control': 'private, no-store, no-transform',
      'referrer-policy': 'no-referrer',
      'x-request-id': REQUEST_ID,
    });
  });

  it('answers HEAD with the same headers and no body, and no range of it', async () => {
    const whole = await server.fetch(url);
    const head = await server.fetch(url, { method: 'HEAD', headers: { range: 'bytes=0-1' } });
    expect(head.status).toBe(200);
    expect(head.body.byteLength).toBe(0);
    const { date: _, ...expected } = whole.headers;
    expect(head.headers).toMatchObject(expected);
  });

  it('gives a range', async () => {
    const { status, headers, body } = await server.fetch(url, { headers: { range: 'bytes=1000-1999' } });
    expect(status).toBe(206);
    expect(headers).toMatchObject({ 'content-range': 'bytes 1000-1999/300000', 'content-length': '1000', etag: ETAG });
    expect(body.equals(BYTES.subarray(1000, 2000))).toBe(true);
  });

  it('is put together again from its ranges', async () => {
    const step = 77_777;
    const parts: Buffer[] = [];
    for (let start = 0; start < BYTES.byteLength; start += step) {
      const headers = { range: `bytes=${start}-${start + step - 1}`, 'if-range': ETAG };
      parts.push((await server.fetch(url, { headers })).body);
    }
    expect(Buffer.concat(parts).equals(BYTES)).toBe(true);
  });

  it.each([
    ['several ranges', { range: 'bytes=0-1,4-5' }],
    ['a malformed range', { range: 'bytes=5-2' }],
    ['a range of another state', { range: 'bytes=0-1', 'if-range': '"other"' }],
  ])('gives the whole for %s', async (_what, headers) => {
    const { status, body } = await server.fetch(url, { headers });
    expect([status, body.byteLength]).toEqual([200, BYTES.byteLength]);
  });

  it('refuses a range past its end, and says how long it is', async () => {
    const { status, headers, body } = await server.fetch(url, { headers: { range: 'bytes=300000-' } });
    expect(status).toBe(416);
    expect(headers).toMatchObject({ 'content-range': 'bytes */300000', 'content-type': 'application/json; charset=utf-8' });
    expect(JSON.parse(body.toString())).toEqual({
      success: false,
      code: 'bad_request',
      message: 'The range has no byte of the file',
      details: [{ path: 'header.range', message: 'must begin within the file' }],
    });
  });

  it('answers a client that has it already without the bytes', async () => {
    const { status, headers, body } = await server.fetch(url, { headers: { 'if-none-match': ETAG, range: 'bytes=0-1' } });
    expect([status, body.byteLength]).toEqual([304, 0]);
    expect(headers).toMatchObject({ etag: ETAG, 'cache-control': 'private, no-store, no-transform' });
  });

  it('refuses a client that wants another state', async () => {
    const { status, body } = await server.fetch(url, { headers: { 'if-match': '"other"' } });
    expect(status).toBe(412);
    expect(JSON.parse(body.toString())).toMatchObject({ success: false, code: 'bad_request' });
  });

  it.each(['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'])('refuses %s, and says what it allows', async (method) => {
    const { status, headers, body } = await server.fetch(url, { method });
    expect([status, headers.allow]).toEqual([405, 'GET, HEAD']);
    const details = [{ path: 'request', message: 'must use the method GET or HEAD' }];
    const message = 'The method is not allowed';
    expect(JSON.parse(body.toString())).toEqual({ success: false, code: 'bad_request', message, details });
  });

  it('has the name that the file has now', async () => {
    await files.db.query('update file set display_name = $1 where id = $2', ['renamed', id]);
    expect((await server.fetch(url)).headers['content-disposition']).toBe('attachment; filename="renamed"');
  });
});

describe('a URL that is not good', () => {
  const answerTo = async (bad: string, method = 'GET') => {
    const { status, headers, body } = await server.fetch(bad, { method });
    const { date: _, ...rest } = headers;
    return { status, headers: rest, body: body.toString() };
  };

  it('gets the same answer whether it is forged, expired or of a file that is deleted or never was', async () => {
    const expired = downloadUrls.create(id, files.clock.now());
    const gone = await storeFile(files, ref);
    await files.db.query('delete from file where id = $1', [gone]);
    const bad = [`${url.slice(0, -1)}~`, expired, urlFor(gone), urlFor(newId()), '/downloads/', '/downloads/x'];
    const answers = await Promise.all(bad.map((one) => answerTo(one)));
    const body = '{"success":false,"code":"not_found","message":"Not found"}';
    expect(answers[0]).toMatchObject({
      status: 404,
      body,
      headers: { 'content-type': 'application/json; charset=utf-8', 'x-request-id': REQUEST_ID },
    });
    expect(answers).toEqual(Array(bad.length).fill(answers[0]));
    expect(await answerTo(expired, 'HEAD')).toEqual({ ...answers[0], body: '' });
  });

  it('costs no look-up when it is forged or expired', async () => {
    const expired = downloadUrls.create(id, files.clock.now());
    const sent = await statementsOf(() => Promise.all([answerTo(`${url.slice(0, -1)}~`), answerTo(expired)]));
    expect(sent).toEqual([]);
    expect((await statementsOf(() => answerTo(url))).length).toBe(1);
  });
});

describe('a file without its object', () => {
  it('is a failure with an error id', async () => {
    await rm(files.objectsDir, { recursive: true });
    for (const method of ['GET', 'HEAD']) {
      const { status, body } = await server.fetch(url, { method });
      expect(status).toBe(500);
      if (method === 'HEAD') continue;
      const message = `Internal server error. Error id: ${REQUEST_ID}`;
      expect(JSON.parse(body.toString())).toEqual({ success: false, code: 'INTERNAL_ERROR', message });
    }
  });
});
