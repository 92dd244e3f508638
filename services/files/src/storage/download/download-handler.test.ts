import { createHash, randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { newId } from '@latchkey/kit/validation/id';
import { statementsOf } from '@latchkey/testkit/postgres/statements';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type DownloadServer, REQUEST_ID, startDownloadServer } from '../../testing/download-server.ts';
import { storeFile } from '../../testing/stored-file.ts';
import { SECRET_KEY, type TestFiles, useTestFiles } from '../../testing/test-files.ts';
import { createDownloadHandler } from './download-handler.ts';
import { createDownloadUrls } from './download-url.ts';

const BYTES = randomBytes(300_000);
const ETAG = `"${createHash('sha256').update(BYTES).digest('hex')}"`;
const LIFETIME_MS = 60_000;
const downloadUrls = createDownloadUrls({ secretKey: SECRET_KEY, publicUrl: 'http://localhost' });

const files = useTestFiles();
let server: DownloadServer;
beforeAll(async () => {
  server = await startDownloadServer(createDownloadHandler({ ...files.ctx, downloadUrls }));
});
afterAll(() => server.close());

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
  it('sends the bytes to be saved and never shown or run', async () => {
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

  it('responds to HEAD with the same headers and no body', async () => {
    const whole = await server.fetch(url);
    const head = await server.fetch(url, { method: 'HEAD', headers: { range: 'bytes=0-1' } });
    expect(head.status).toBe(200);
    expect(head.body.byteLength).toBe(0);
    const { date: _, ...expected } = whole.headers;
    expect(head.headers).toMatchObject(expected);
  });

  it('sends a range', async () => {
    const { status, headers, body } = await server.fetch(url, { headers: { range: 'bytes=1000-1999' } });
    expect(status).toBe(206);
    expect(headers).toMatchObject({ 'content-range': 'bytes 1000-1999/300000', 'content-length': '1000', etag: ETAG });
    expect(body.equals(BYTES.subarray(1000, 2000))).toBe(true);
  });

  it('rejects a range past its end, with the size', async () => {
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

  it('sends no bytes to a client that has them', async () => {
    const { status, headers, body } = await server.fetch(url, { headers: { 'if-none-match': ETAG, range: 'bytes=0-1' } });
    expect([status, body.byteLength]).toEqual([304, 0]);
    expect(headers).toMatchObject({ etag: ETAG, 'cache-control': 'private, no-store, no-transform' });
  });

  it('rejects a precondition that does not hold', async () => {
    const { status, body } = await server.fetch(url, { headers: { 'if-match': '"other"' } });
    expect(status).toBe(412);
    expect(JSON.parse(body.toString())).toMatchObject({ success: false, code: 'bad_request' });
  });

  it('rejects other methods, and says what it allows', async () => {
    const { status, headers, body } = await server.fetch(url, { method: 'PUT' });
    expect([status, headers.allow]).toEqual([405, 'GET, HEAD']);
    const details = [{ path: 'request', message: 'must use the method GET or HEAD' }];
    const message = 'The method is not allowed';
    expect(JSON.parse(body.toString())).toEqual({ success: false, code: 'bad_request', message, details });
  });
});

describe('a bad URL', () => {
  const responseTo = async (bad: string, method = 'GET') => {
    const { status, headers, body } = await server.fetch(bad, { method });
    const { date: _, ...rest } = headers;
    return { status, headers: rest, body: body.toString() };
  };

  it('gets one response whether it is forged, expired, or of a file that is deleted or unknown', async () => {
    const expired = downloadUrls.create(id, files.clock.now());
    const gone = await storeFile(files, ref);
    await files.db.query('delete from file where id = $1', [gone]);
    const bad = [`${url.slice(0, -1)}~`, expired, urlFor(gone), urlFor(newId()), '/downloads/', '/downloads/x'];
    const responses = await Promise.all(bad.map((one) => responseTo(one)));
    const body = '{"success":false,"code":"not_found","message":"Not found"}';
    expect(responses[0]).toMatchObject({
      status: 404,
      body,
      headers: { 'content-type': 'application/json; charset=utf-8', 'x-request-id': REQUEST_ID },
    });
    expect(responses).toEqual(Array(bad.length).fill(responses[0]));
    expect(await responseTo(expired, 'HEAD')).toEqual({ ...responses[0], body: '' });
  });

  it('costs no query when it is forged or expired', async () => {
    const expired = downloadUrls.create(id, files.clock.now());
    const sent = await statementsOf(() => Promise.all([responseTo(`${url.slice(0, -1)}~`), responseTo(expired)]));
    expect(sent).toEqual([]);
    expect((await statementsOf(() => responseTo(url))).length).toBe(1);
  });

  it('is one with any character changed, added or left out, the parts of two, or another secret', () => {
    const tokenOf = (text: string) => text.slice(text.lastIndexOf('/') + 1);
    const read = (token: string) => downloadUrls.read(token, files.clock.now());
    const [token, other] = [tokenOf(urlFor(id)), tokenOf(urlFor(newId()))];
    expect(read(token)).toBe(id);
    for (let i = 0; i < token.length; i += 1) {
      // Also neighbours in the alphabet, which differ in the last bit only.
      const changed = ['A', 'B', '_', token[i] === 'g' ? 'h' : 'g', ''].filter((character) => character !== token[i]);
      for (const character of changed) expect(read(token.slice(0, i) + character + token.slice(i + 1))).toBeUndefined();
    }
    for (const more of ['A', '=', '\n', '\0']) expect(read(token + more)).toBeUndefined();
    expect(read(token.slice(0, 32) + other.slice(32))).toBeUndefined();
    const foreign = createDownloadUrls({ secretKey: `${SECRET_KEY}!`, publicUrl: 'http://localhost' });
    expect(read(tokenOf(foreign.create(id, new Date(8.64e15))))).toBeUndefined();
    for (const text of ['', 'é'.repeat(75), 'A'.repeat(100_000)]) expect(read(text)).toBeUndefined();
  });

  it('is one from the whole second after its expiry on', () => {
    const NOW = new Date('2026-05-12T09:00:00.000Z').getTime();
    const link = createDownloadUrls({ secretKey: SECRET_KEY, publicUrl: 'https://example.com/latchkey/' }).create(
      id,
      new Date(NOW + 1_001),
    );
    expect(link).toMatch(/^https:\/\/example\.com\/latchkey\/downloads\/[\w-]{75}$/);
    const readAt = (ms: number) => downloadUrls.read(link.slice(-75), new Date(NOW + ms));
    expect([readAt(1_999), readAt(2_000)]).toEqual([id, undefined]);
  });
});

describe('a file without its object', () => {
  it('is an internal error with an error id', async () => {
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
