import { hash } from 'node:crypto';
import { Readable } from 'node:stream';
import { commonErrors } from '@latchkey/kit/errors/errors';
import { eventually } from '@latchkey/testkit/eventually';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  APPLICATION_ID,
  type DataPathKind,
  FILE_ID,
  fileErrors,
  startUploadGateway,
  type UploadGateway,
} from '../testing/upload-gateway.ts';

const MIB = 1024 * 1024;
const BYTES = Buffer.from('some bytes');
const SHA256 = hash('sha256', BYTES, 'buffer');
const DIGEST = `sha-256=:${SHA256.toString('base64')}:`;

const pieces = (count: number) =>
  Readable.toWeb(Readable.from(Array.from({ length: count }, () => Buffer.alloc(MIB)))) as RequestInit['body'];

async function outcome(sent: Promise<Response>) {
  const response = await sent;
  return `${response.status} ${((await response.json()) as { code?: string }).code ?? ''}`.trim();
}

/** A gateway for all tests of a block, whose fake starts anew with each. */
function useUploadGateway(kind: DataPathKind): UploadGateway {
  const gateway = {} as UploadGateway;
  beforeAll(async () => void Object.assign(gateway, await startUploadGateway(kind)));
  afterAll(() => gateway.stop());
  beforeEach(() => {
    const { fake, logged } = gateway;
    fake.begun.length = fake.whole.length = logged.length = fake.received = fake.broken = 0;
    Object.assign(fake, { byteSizeMax: 20 * MIB, refusal: undefined, stored: undefined, beforeReading: async () => undefined });
  });
  return gateway;
}

describe('the head of an upload', () => {
  const gateway = useUploadGateway('direct');

  /** The status of an upload of `x` with these lines in its head. */
  async function statusOf(...lines: string[]): Promise<number> {
    const client = await gateway.begin([...lines, 'Content-Length: 1']);
    client.socket.write('x');
    await eventually(() => client.received() !== '');
    return Number(/^HTTP\/1\.1 (\d+)/.exec(client.received())?.[1]);
  }

  it.each([
    ['Content-Length: 0', '', 0n],
    ['X-No: body', '', 0n],
    ['Transfer-Encoding: chunked', '0\r\n\r\n', undefined],
  ])('declares the size of an empty body: %s', async (line, body, byteSize) => {
    const client = await gateway.begin([line]);
    client.socket.write(body);
    await eventually(() => client.received().startsWith('HTTP/1.1 200 '));
    expect(gateway.fake.begun.map((begun) => begun.byteSize)).toEqual([byteSize]);
  });

  it('accepts only plain bytes, declared so at most once', async () => {
    const type = 'Content-Type: Application/Octet-Stream; x=y';
    expect([await statusOf(), await statusOf(type)]).toEqual([200, 200]);
    gateway.fake.begun.length = 0;
    for (const line of ['Content-Type: application/json', 'Content-Type: x', 'Content-Encoding: identity, gzip'])
      expect(await statusOf(line)).toBe(415);
    for (const second of [type, 'content-type: text/plain']) expect(await statusOf(type, second)).toBe(400);
    expect(gateway.fake.begun).toEqual([]);
  });

  it.each<[string, number]>([
    ['', 400],
    ['fileName=a&fileName=b', 400],
    ['fileName=a..b', 400],
    ...['a%ed%a0%80', '%ed%b0%80a', 'a%ff', 'a%', 'a%zz', 'a%c0%80'].map((name) => [`fileName=${name}`, 400] as [string, number]),
    ['filename=a', 400],
    ['fileName[]=a', 400],
    ['fileName=%E2%80%8B%20setup.exe%20%00', 200],
  ])('checks the name before a byte is read: %s', async (query, status) => {
    const response = await gateway.upload(BYTES, {}, gateway.url.replace('fileName=setup.exe', query));
    expect(response.status).toBe(status);
    expect(gateway.fake.begun.map(({ fileName }) => fileName)).toEqual(status === 200 ? ['setup.exe'] : []);
  });

  it('forwards the SHA-256 of Content-Digest, also from two fields, and rejects a malformed one', async () => {
    expect(await statusOf('Content-Digest: sha-512=:AAAA:', `Content-Digest: ${DIGEST}`)).toBe(200);
    expect(Buffer.from(gateway.fake.begun[0]?.expectedChecksum ?? [])).toEqual(SHA256);
    for (const digest of [
      'sha-256=:AAAA:',
      'sha-256',
      ...['no dictionary!', 'false', `${DIGEST}, a=1`],
      DIGEST.toUpperCase(),
      `sha-256=:${SHA256.toString('hex')}:`,
      ...['sha-256=::', `sha-256="${SHA256.toString('base64')}"`, SHA256.toString('base64'), `${DIGEST},`],
      ...[`sha-256=:${'-_'.repeat(21)}A=:`, DIGEST.replace('sha', 'SHA'), `SHA-256=${SHA256.toString('base64')}`],
    ])
      expect(await outcome(gateway.upload(BYTES, { 'content-digest': digest })), digest).toBe('400 VALIDATION_ERROR');
    expect(gateway.fake.begun).toHaveLength(1);
  });

  it.each(['a,', 'a=', '"\\\\', ':::', '((((', 'sha-256=:AAAA, ', ' \t'])(
    'parses Content-Digest in linear time: %j',
    async (piece) => {
      const startedAt = performance.now();
      expect(await statusOf(`Content-Digest: x${piece.repeat(14_000 / piece.length)}"`)).toBe(400);
      expect(performance.now() - startedAt).toBeLessThan(500);
    },
  );

  it('checks the credential, the scope and the application before the type', async () => {
    const as = (key: string) => outcome(gateway.upload(BYTES, { authorization: key, 'content-type': 'text/plain' }));
    expect([await as('Bearer reader'), await as('')]).toEqual(['403 insufficient_scope', '401 api_key_invalid']);
    expect(await outcome(gateway.upload(BYTES, { authorization: 'Bearer restricted' }))).toBe('403 application_forbidden');
    expect(await outcome(gateway.upload(BYTES, {}, gateway.url.replace(APPLICATION_ID, 'none')))).toBe('404 not_found');
    expect(gateway.fake.begun).toEqual([]);
  });
});

describe.each<DataPathKind>(['direct', 'remote'])('the body of an upload, forwarded %s', (kind) => {
  const gateway = useUploadGateway(kind);

  // First, since the server lingers for 5 s on their connections before it stops.
  it.each([
    ['nonsense', 'nonsense\r\n'],
    ['tiny chunks', '1\r\na\r\n'.repeat(100_000)],
  ])('stores nothing of a chunked body with %s', async (_, chunks) => {
    const { socket, received } = await gateway.begin(['Transfer-Encoding: chunked', 'X-Request-Id: mine']);
    socket.write('5\r\n12345\r\n');
    await eventually(() => gateway.fake.received === 1);
    socket.write(chunks);
    await eventually(() => received() !== '');
    expect(received()).toMatch(/^HTTP\/1\.1 400 .*connection: close.*"bad_request"/is);
    await eventually(() => expect([gateway.fake.whole, gateway.fake.broken]).toEqual([[], 1]));
  });

  it('stores the bytes, with or without a declared size, and returns what they are', async () => {
    const response = await gateway.upload(BYTES);
    const data = { id: expect.any(String), byteSize: BYTES.byteLength, checksum: SHA256.toString('hex') };
    expect([response.status, await response.json()]).toEqual([200, { success: true, message: 'File uploaded.', data }]);
    expect((await gateway.upload(pieces(5), { 'content-encoding': 'identity' })).status).toBe(200);
    expect(gateway.fake.begun).toMatchObject([
      { applicationId: APPLICATION_ID, fileName: 'setup.exe', byteSize: BigInt(BYTES.byteLength) },
      { expectedChecksum: new Uint8Array() },
    ]);
    expect(gateway.fake.begun[1]?.byteSize).toBeUndefined();
    expect(gateway.fake.whole).toEqual([BYTES.byteLength, 5 * MIB]);
  });

  it.each([
    [fileErrors.file_name_taken(), '409 file_name_taken'],
    [fileErrors.file_empty(), '400 invalid_file'],
    [fileErrors.file_too_large(), '413 limit_exceeded'],
    [fileErrors.upload_timeout(), '408 upload_timeout'],
  ])('returns an error from before or while the bytes are read: %s', async (err, expected) => {
    gateway.fake.refusal = err;
    expect(await outcome(gateway.upload(BYTES))).toBe(expected);
    gateway.fake.refusal = undefined;
    gateway.fake.beforeReading = () => Promise.reject(err);
    expect(await outcome(gateway.upload(pieces(10)))).toBe(expected);
  });

  it('returns 503 for a ticket that expired before the bytes arrived, and 429 during another upload', async () => {
    gateway.fake.beforeReading = () => Promise.reject(fileErrors.upload_ticket_invalid());
    expect(await outcome(gateway.upload(BYTES))).toBe('503 INTERNAL_ERROR');
    gateway.fake.refusal = fileErrors.upload_under_way({ policy: 'uploads-at-once', limit: 1, windowMs: 9_000, retryMs: 7_000 });
    const response = await gateway.upload(BYTES);
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '7']);
  });

  it('names the file of an upload whose outcome is unknown', async () => {
    gateway.fake.beforeReading = () => Promise.reject(commonErrors.outcome_unknown());
    const response = await gateway.upload(BYTES);
    const { code, message } = (await response.json()) as { code: string; message: string };
    expect([response.status, code, response.headers.get('x-file-id')]).toEqual([503, 'outcome_unknown', FILE_ID]);
    expect([message, response.headers.get('retry-after')]).toEqual([expect.stringContaining(FILE_ID), '2']);
  });

  it('returns the stored file of a repeated upload, and reads no byte', async () => {
    gateway.fake.stored = { id: FILE_ID, byteSize: 5n, checksum: SHA256 };
    const { received } = await gateway.begin(['Expect: 100-continue', `Content-Length: ${40 * MIB}`]);
    await eventually(() => received().includes('"checksum"'));
    const data = { id: FILE_ID, byteSize: 5, checksum: SHA256.toString('hex') };
    expect(received()).toMatch(/^HTTP\/1\.1 200 /);
    expect(received()).toContain(JSON.stringify(data));
    expect(gateway.fake.received).toBe(0);
  });

  it.each([
    ['a length', [`Content-Length: ${40 * MIB}`], ''],
    ['chunks', ['Transfer-Encoding: chunked'], `${(40 * MIB).toString(16)}\r\n`],
  ])('returns 413 to a client that sends everything before it reads: %s', async (_, lines, first) => {
    const client = await gateway.begin(lines);
    client.socket.pause();
    client.socket.write(first);
    await client.pour(40 * MIB);
    client.socket.end();
    client.socket.resume();
    expect(await client.ended).toBe('end');
    expect(client.received()).toMatch(/^HTTP\/1\.1 413 .*connection: close.*"limit_exceeded"/is);
    expect(gateway.fake.whole).toEqual([]);
  });

  it('sends 100 Continue once, and only after all checks', async () => {
    const begin = (...lines: string[]) => gateway.begin(['Expect: 100-continue', 'Content-Length: 5', ...lines]);
    const wrongType = await begin('Content-Type: text/plain');
    await eventually(() => wrongType.received() !== '');
    expect(wrongType.received()).toMatch(/^HTTP\/1\.1 415 .*connection: close/is);
    gateway.fake.refusal = fileErrors.file_name_taken();
    const taken = await begin();
    await eventually(() => taken.received() !== '');
    expect(taken.received()).toMatch(/^HTTP\/1\.1 409 /);
    gateway.fake.refusal = undefined;
    const accepted = await begin();
    await eventually(() => accepted.received() !== '');
    expect(accepted.received()).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    accepted.socket.write('12345');
    await eventually(() => accepted.received().includes('HTTP/1.1 200 '));
    expect(accepted.received().match(/100 Continue/g)).toHaveLength(1);
  });

  it.each([
    ['a FIN', 'a length'],
    ['a FIN', 'chunks'],
    ['an RST', 'chunks'],
  ])('stores nothing of a body that ends with %s, sent with %s, and logs no defect', async (how, framing) => {
    for (let i = 1; i <= 5; i += 1) {
      const lines = framing === 'chunks' ? ['Transfer-Encoding: chunked'] : [`Content-Length: ${MIB}`];
      const { socket, pour, ended } = await gateway.begin(lines);
      if (framing === 'chunks') socket.write(`${MIB.toString(16)}\r\n`);
      await pour(Math.floor((MIB * i) / 6));
      await eventually(() => gateway.fake.received === i);
      if (how === 'a FIN') socket.end();
      else socket.resetAndDestroy();
      await ended;
    }
    await eventually(() => gateway.fake.broken === 5);
    expect(gateway.fake.whole).toEqual([]);
    expect((await gateway.upload(BYTES)).status).toBe(200);
    await eventually(() => gateway.logged.some(({ status }) => status === 200));
    expect(gateway.logged.filter(({ msg, status }) => msg !== 'request' || Number(status) >= 500)).toEqual([]);
  });
});
