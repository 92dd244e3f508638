import { createHash, randomBytes } from 'node:crypto';
import { request } from 'node:http';
import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient, type RawClient } from '@latchkey/testkit/network/raw-client';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Api } from '../client/api.ts';
import { createApplication, createKey, sharedApi, signUp, unique } from '../client/caller.ts';
import { listFiles, MIB, outcome } from '../client/files.ts';
import { uploadHead } from '../client/routes.ts';

const UPLOADS = '/api/v1/panel/uploads';
const TUS = { 'tus-resumable': '1.0.0' };
const CHUNK = { ...TUS, 'content-type': 'application/offset+octet-stream' };
const CHUNKED = 'Transfer-Encoding: chunked\r\n\r\n';
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

let api: Api;
/** Of a key that is restricted to another application. */
let elsewhere: Api;
let applicationId: string;
beforeAll(async () => {
  const owner = await signUp();
  applicationId = await createApplication(owner.session);
  api = (await createKey(owner)).api;
  elsewhere = (await createKey(owner, { applicationIds: [await createApplication(owner.session)] })).api;
});

const create = (byteSize: number, fileName = unique(), more: Record<string, string> = {}, headers = {}) =>
  api.post(UPLOADS, null, {}, { headers: { ...uploadHead(applicationId, fileName, byteSize, more), ...headers } });

const append = (path: string, offset: number, bytes: Uint8Array, headers: Record<string, string> = {}) =>
  api.patch(path, bytes, {}, { headers: { ...CHUNK, 'upload-offset': String(offset), ...headers } });

const head = (path: string) => fetch(`${api.baseUrl}${path}`, { method: 'HEAD', headers: { ...api.headers, ...TUS } });

const end = (path: string) => api.delete(path, null, { headers: TUS });

/** Sends a part of a chunk and breaks off. */
function breakOff(path: string, offset: number, bytes: Uint8Array, announced: number): Promise<void> {
  const headers = { ...api.headers, ...CHUNK, 'upload-offset': String(offset), 'content-length': String(announced) };
  const req = request(`${api.baseUrl}${path}`, { method: 'PATCH', headers, agent: false });
  return new Promise((resolve) => {
    req.on('error', () => resolve());
    req.write(bytes, () => setImmediate(() => req.destroy()));
  });
}

/** Sends a creation with an idempotency key: the rest has headers and a body. */
async function sendCreation(fileName: string, byteSize: number, rest: string): Promise<RawClient> {
  const headers = { ...api.headers, ...uploadHead(applicationId, fileName, byteSize), ...CHUNK, 'idempotency-key': unique() };
  const lines = Object.entries({ host: 'x', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  const client = await openRawClient(Number(new URL(api.baseUrl).port));
  client.socket.write(`POST ${UPLOADS} HTTP/1.1\r\n${lines.join('')}${rest}`);
  return client;
}

const listNamed = async (fileName: string): Promise<Array<{ readonly id: string }>> =>
  (await api.get(UPLOADS)).data.filter((one: { readonly fileName: string }) => one.fileName === fileName);

describe('a resumable upload', () => {
  it('goes on after a chunk broke off, and remembers its file', async () => {
    const bytes = randomBytes(6 * MIB);
    const fileName = unique();
    const created = await create(bytes.length, fileName, { sha256: sha256(bytes), filetype: 'x' });
    const path = created.headers.get('location') ?? '';
    expect([created.status, path]).toEqual([201, `${UPLOADS}/${created.data.id}`]);
    expect(Date.parse(created.headers.get('upload-expires') ?? '')).toBeGreaterThan(Date.now() + 23 * 3_600_000);
    expect((await append(path, 0, bytes.subarray(0, 1_000))).headers.get('upload-offset')).toBe('1000');
    await breakOff(path, 1_000, bytes.subarray(1_000, 4 * MIB), bytes.length - 1_000);
    // The offset may still grow until the service has seen the end.
    let last = await append(path, 0, new Uint8Array());
    while (last.status !== 204) {
      const found = await head(path);
      expect([found.status, found.headers.get('upload-length')]).toEqual([200, String(bytes.length)]);
      expect(found.headers.get('upload-metadata')).toBe(
        uploadHead(applicationId, fileName, 0, { sha256: sha256(bytes), filetype: 'x' })['upload-metadata'],
      );
      const offset = Number(found.headers.get('upload-offset'));
      expect(offset).toBeGreaterThanOrEqual(1_000);
      last = await append(path, offset, bytes.subarray(offset));
      if (last.status !== 204) expect(outcome(last)).toMatch(/^(409 bad_request|423 upload_locked)$/);
    }
    for (const { headers } of [last, await head(path)]) {
      expect(headers.get('x-file-checksum')).toBe(sha256(bytes));
      expect([headers.get('x-file-id'), headers.get('upload-offset')]).toEqual([created.data.id, String(bytes.length)]);
    }
    const file = (await listFiles(api, applicationId)).find(({ displayName }) => displayName === fileName);
    expect(file).toMatchObject({ id: created.data.id, byteSize: bytes.length, checksum: sha256(bytes) });
  });

  it('may come with its creation, and is repeated with an idempotency key', async () => {
    const bytes = Buffer.from('all of it');
    const fileName = unique();
    const headers = { ...uploadHead(applicationId, fileName, bytes.length), ...CHUNK, 'idempotency-key': unique() };
    const [first, second] = [await api.post(UPLOADS, bytes, {}, { headers }), await api.post(UPLOADS, bytes, {}, { headers })];
    expect([first.status, second.status, second.headers.get('idempotency-replayed')]).toEqual([201, 201, 'true']);
    for (const answer of [first, second]) {
      expect(answer.data).toMatchObject({ id: first.data.id, byteOffset: bytes.length, isFinished: true });
      expect(answer.headers.get('x-file-checksum')).toBe(sha256(bytes));
    }
    const other = { ...headers, ...uploadHead(applicationId, unique(), bytes.length) };
    expect(outcome(await api.post(UPLOADS, bytes, {}, { headers: other }))).toBe('422 idempotency_key_reused');
  });

  it('stays where the request that creates it breaks off', async () => {
    const fileName = unique();
    const client = await sendCreation(fileName, 10, 'Content-Length: 10\r\n\r\nsome ');
    await eventually(async () => expect(await listNamed(fileName)).toHaveLength(1));
    client.socket.destroy();
    const path = `${UPLOADS}/${(await listNamed(fileName))[0]?.id}`;
    await eventually(async () => {
      const offset = Number((await head(path)).headers.get('upload-offset'));
      expect((await append(path, offset, Buffer.from('some bytes').subarray(offset))).status).toBe(204);
    });
  });

  it('is listed until it is ended, and then gone', async () => {
    const { data } = await create(10);
    const path = `${UPLOADS}/${data.id}`;
    await append(path, 0, Buffer.from('bytes'));
    const listed = async () => (await api.get(UPLOADS)).data.filter(({ id }: { id: string }) => id === data.id);
    expect(await listed()).toMatchObject([{ id: data.id, applicationId, byteSize: 10, byteOffset: 5, sha256: null }]);
    for (const caller of [elsewhere, (await signUp()).session]) expect((await caller.get(UPLOADS)).data).toEqual([]);
    expect(await end(path)).toMatchObject({ status: 204, headers: expect.anything() });
    expect([await listed(), outcome(await end(path)), (await head(path)).status]).toEqual([[], '410 not_found', 410]);
  });

  it('with another digest than announced is removed', async () => {
    const { data } = await create(5, unique(), { sha256: 'a'.repeat(64) });
    expect(outcome(await append(`${UPLOADS}/${data.id}`, 0, Buffer.from('bytes')))).toBe('460 invalid_file');
    expect((await head(`${UPLOADS}/${data.id}`)).status).toBe(410);
  });
});

describe('a request', () => {
  it('that breaks the protocol is rejected and changes nothing', async () => {
    const { data } = await create(10);
    const path = `${UPLOADS}/${data.id}`;
    const some = Buffer.from('some');
    const elsewhere = await append(path, 1, some);
    expect(outcome(elsewhere)).toBe('409 bad_request');
    expect(JSON.parse(elsewhere.text).details[0].path).toBe('header.upload-offset');
    expect(outcome(await append(path, 0, some, { 'upload-offset': 'x' }))).toBe('400 VALIDATION_ERROR');
    expect(outcome(await append(path, 0, some, { 'content-type': 'application/octet-stream' }))).toBe('415 VALIDATION_ERROR');
    expect(outcome(await append(path, 0, some, { 'idempotency-key': 'no digest' }))).toBe('400 bad_request');
    expect(outcome(await append(path, 0, Buffer.from('longer than it')))).toBe('413 limit_exceeded');
    expect(outcome(await append(path, 0, some, { 'tus-resumable': '0.2.2' }))).toBe('412 bad_request');
    const untyped = await fetch(`${api.baseUrl}${path}`, {
      method: 'PATCH',
      headers: { ...api.headers, ...TUS, 'upload-offset': '0' },
    });
    expect([untyped.status, untyped.headers.get('tus-resumable')]).toEqual([415, '1.0.0']);
    const wrong: ReadonlyArray<[Record<string, string>, string]> = [
      [{ 'upload-metadata': '' }, '400 VALIDATION_ERROR'],
      [{ 'upload-metadata': 'applicationId !' }, '400 VALIDATION_ERROR'],
      [{ 'upload-length': '-1' }, '400 VALIDATION_ERROR'],
      [{ 'upload-length': '0' }, '400 invalid_file'],
      [{ 'upload-length': '999999999999999' }, '413 limit_exceeded'],
      [uploadHead(applicationId, 'a..b', 1), '400 VALIDATION_ERROR'],
      [uploadHead(applicationId, 'fine', 1, { sha256: 'x' }), '400 VALIDATION_ERROR'],
      [uploadHead(applicationId, 'fine', 1, { replace: 'yes' }), '400 VALIDATION_ERROR'],
      [uploadHead('x', 'fine', 1), '404 not_found'],
    ];
    for (const [headers, expected] of wrong) expect(outcome(await create(1, unique(), {}, headers))).toBe(expected);
    expect((await head(path)).headers.get('upload-offset')).toBe('0');
    await end(path);
  });

  it.each([
    ['declares more bytes than its upload has', 4, 'Content-Length: 14\r\n\r\nlonger than it', '413'],
    ['sends more bytes than its upload has', 4, `${CHUNKED}e\r\nlonger than it\r\n0\r\n\r\n`, '413'],
    [
      'sends other bytes than its digest',
      4,
      `Content-Digest: sha-256=:${'A'.repeat(43)}=:\r\nContent-Length: 4\r\n\r\nsome`,
      '400',
    ],
    ['sends tiny chunks', MIB, `${CHUNKED}${'1\r\nx\r\n'.repeat(100_000)}`, '400'],
  ])('that creates an upload and %s is rejected and changes nothing', async (_what, byteSize, rest, status) => {
    const fileName = unique();
    const client = await sendCreation(fileName, byteSize, rest);
    await eventually(() => expect(client.received()).toMatch(/^HTTP/));
    client.socket.destroy();
    const listed = await listNamed(fileName);
    expect(client.received()).not.toMatch(/^location:/im);
    expect([client.received().slice(9, 12), listed]).toEqual([status, []]);
  });

  it('may name its method in a header, and OPTIONS describe the service', async () => {
    const { data } = await create(5);
    const headers = { ...api.headers, ...CHUNK, 'upload-offset': '0', 'x-http-method-override': 'PATCH' };
    const overridden = await fetch(`${api.baseUrl}${UPLOADS}/${data.id}`, { method: 'POST', headers, body: 'bytes' });
    expect([overridden.status, overridden.headers.get('upload-offset')]).toEqual([204, '5']);
    const described = await sharedApi().send('OPTIONS', UPLOADS);
    const names = ['tus-version', 'tus-resumable', 'tus-extension', 'tus-max-size'];
    const extensions = 'creation,creation-with-upload,expiration,termination';
    expect(names.map((name) => described.headers.get(name))).toEqual(['1.0.0', '1.0.0', extensions, String(150 * MIB)]);
  });
});
