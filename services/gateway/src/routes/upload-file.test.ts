import { execFile } from 'node:child_process';
import { hash } from 'node:crypto';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { eventually } from '@latchkey/testkit/eventually';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  APPLICATION_ID,
  type DataPathKind,
  fileErrors,
  startUploadGateway,
  type UploadGateway,
} from '../testing/upload-gateway.ts';

const MIB = 1024 * 1024;
const KINDS: DataPathKind[] = ['direct', 'remote'];
const BYTES = Buffer.from('some bytes');
const SHA256 = hash('sha256', BYTES, 'buffer');

const pieces = (count: number) =>
  Readable.toWeb(Readable.from(Array.from({ length: count }, () => Buffer.alloc(MIB)))) as RequestInit['body'];

async function outcome(answer: Promise<Response>) {
  const response = await answer;
  const { code } = (await response.json()) as { code: string };
  return [response.status, code];
}

describe.each(KINDS)('upload-file, its bytes passed on %s', (kind) => {
  let gateway: UploadGateway;
  beforeAll(async () => {
    gateway = await startUploadGateway(kind);
  });
  afterAll(() => gateway.stop());
  beforeEach(() => {
    const { fake, logged } = gateway;
    fake.begun.length = fake.whole.length = logged.length = fake.received = fake.broken = 0;
    Object.assign(fake, { byteSizeMax: 150 * MIB, refusal: undefined, beforeReading: async () => undefined });
  });

  it('stores the bytes and answers what they are', async () => {
    const response = await gateway.upload(BYTES);
    expect([response.status, await response.json()]).toEqual([
      200,
      {
        success: true,
        message: 'File uploaded.',
        data: { id: expect.any(String), byteSize: BYTES.byteLength, checksum: SHA256.toString('hex') },
      },
    ]);
    expect(gateway.fake.begun).toMatchObject([
      { accountId: expect.any(String), applicationId: APPLICATION_ID, fileName: 'setup.exe', byteSize: BigInt(BYTES.byteLength) },
    ]);
    expect(gateway.fake.begun[0]?.expectedChecksum).toEqual(new Uint8Array());
  });

  it('does not need to know the size, and passes on what there is', async () => {
    const response = await gateway.upload(pieces(20));
    expect(response.status).toBe(200);
    expect(gateway.fake.begun[0]?.byteSize).toBeUndefined();
    expect(gateway.fake.whole).toEqual([20 * MIB]);
  });

  it.each([
    ['Content-Length: 0', '', 0n],
    ['X-No: body', '', 0n],
    ['Transfer-Encoding: chunked', '0\r\n\r\n', undefined],
  ])('says the size of an empty body: %s', async (line, body, byteSize) => {
    const client = await gateway.begin([line]);
    client.socket.write(body);
    await eventually(() => client.received().startsWith('HTTP/1.1 200 '));
    expect(gateway.fake.begun.map((begun) => begun.byteSize)).toEqual([byteSize]);
    client.socket.destroy();
  });

  it.each([undefined, 'application/octet-stream', 'Application/Octet-Stream; x=y'])('takes the type %s', async (type) => {
    const client = await gateway.begin([...(type ? [`Content-Type: ${type}`] : []), 'Content-Length: 1']);
    client.socket.write('x');
    await eventually(() => client.received().startsWith('HTTP/1.1 200 '));
    client.socket.destroy();
  });

  it.each([
    { 'content-type': 'application/json' },
    { 'content-type': 'text/plain' },
    { 'content-type': 'application/octet-streams' },
    { 'content-type': 'x' },
    { 'content-encoding': 'gzip' },
    { 'content-encoding': 'identity, gzip' },
  ])('refuses a body that is no plain bytes: %o', async (headers) => {
    expect(await outcome(gateway.upload(BYTES, headers as unknown as Record<string, string>))).toEqual([415, 'VALIDATION_ERROR']);
    expect(gateway.fake.begun).toEqual([]);
  });

  it('refuses two types, of which the first would be taken in silence', async () => {
    const type = 'Content-Type: application/octet-stream';
    for (const other of [type, 'content-type: text/plain']) {
      const client = await gateway.begin([type, other, 'Content-Length: 1']);
      client.socket.write('x');
      await eventually(() => client.received() !== '');
      expect(client.received()).toMatch(/^HTTP\/1\.1 400 .*"bad_request"/s);
      client.socket.destroy();
    }
    expect(gateway.fake.begun).toEqual([]);
  });

  it('refuses a body in small chunks, and gives the ticket back', async () => {
    const client = await gateway.begin(['Transfer-Encoding: chunked', 'X-Request-Id: mine']);
    client.socket.write('1\r\na\r\n'.repeat(100_000));
    await eventually(() => client.received() !== '');
    expect(client.received()).toMatch(/^HTTP\/1\.1 400 .*x-request-id: mine.*connection: close.*"bad_request"/is);
    expect([gateway.fake.whole, gateway.fake.broken]).toEqual([[], 1]);
    client.socket.destroy();
  });

  it('takes a body that says that it is not encoded', async () => {
    expect((await gateway.upload(BYTES, { 'content-encoding': 'identity' })).status).toBe(200);
  });

  it.each([
    ['fileName=', 400],
    ['', 400],
    ['fileName=a&fileName=b', 400],
    ['fileName=a..b', 400],
    ['fileName=12345678901234567', 400],
    ['fileName=a%2Fb', 400],
    ['fileName=%E2%80%8B%20setup.exe%20%00', 200],
  ])('checks the name before a byte is read: %s', async (query, status) => {
    const url = gateway.url.replace('fileName=setup.exe', query);
    const response = await gateway.upload(BYTES, {}, url);
    expect(response.status).toBe(status);
    expect(gateway.fake.begun.map(({ fileName }) => fileName)).toEqual(status === 200 ? ['setup.exe'] : []);
  });

  it('passes on the SHA-256 of Content-Digest, also from two fields', async () => {
    const { socket, received } = await gateway.begin([
      'Content-Digest: sha-512=:AAAA:',
      `Content-Digest: sha-256=:${SHA256.toString('base64')}:`,
      `Content-Length: ${BYTES.byteLength}`,
    ]);
    socket.write(BYTES);
    await eventually(() => received().startsWith('HTTP/1.1 200 '));
    expect(Buffer.from(gateway.fake.begun[0]?.expectedChecksum ?? [])).toEqual(SHA256);
    socket.destroy();
  });

  it.each(['sha-256=:AAAA:', 'sha-256', 'no dictionary!'])('refuses the Content-Digest %s', async (digest) => {
    expect(await outcome(gateway.upload(BYTES, { 'content-digest': digest }))).toEqual([400, 'VALIDATION_ERROR']);
    expect(gateway.fake.begun).toEqual([]);
  });

  it('refuses whoever may not upload before anything else is looked at', async () => {
    const asReader = { authorization: 'Bearer reader', 'content-type': 'text/plain' };
    expect(await outcome(gateway.upload(BYTES, asReader))).toEqual([403, 'insufficient_scope']);
    expect(await outcome(gateway.upload(BYTES, { authorization: 'Bearer restricted' }))).toEqual([403, 'application_forbidden']);
    expect(await outcome(gateway.upload(BYTES, { authorization: '' }))).toEqual([401, 'api_key_invalid']);
    const unknown = gateway.url.replace(APPLICATION_ID, 'none');
    expect(await outcome(gateway.upload(BYTES, {}, unknown))).toEqual([404, 'not_found']);
    expect(gateway.fake.begun).toEqual([]);
  });

  it.each([
    [fileErrors.file_name_taken(), 409, 'file_name_taken'],
    [fileErrors.file_empty(), 400, 'invalid_file'],
    [fileErrors.file_too_large(), 413, 'limit_exceeded'],
    [fileErrors.upload_timeout(), 408, 'upload_timeout'],
  ])('answers a refusal before and while the bytes are read: %s', async (err, status, code) => {
    gateway.fake.refusal = err;
    expect(await outcome(gateway.upload(BYTES))).toEqual([status, code]);
    gateway.fake.refusal = undefined;
    gateway.fake.beforeReading = async () => {
      throw err;
    };
    expect(await outcome(gateway.upload(pieces(50)))).toEqual([status, code]);
  });

  it('answers 503 where the ticket expired before the bytes came', async () => {
    gateway.fake.beforeReading = async () => {
      throw fileErrors.upload_ticket_invalid();
    };
    expect(await outcome(gateway.upload(BYTES))).toEqual([503, 'INTERNAL_ERROR']);
  });

  it('says when to come back where another upload of the account is under way', async () => {
    gateway.fake.refusal = fileErrors.upload_under_way({ policy: 'uploads-at-once', limit: '1', retryAfterSeconds: '7' });
    const response = await gateway.upload(BYTES);
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '7']);
  });

  describe('a client that is still sending', { timeout: 60_000 }, () => {
    it.each([
      ['a length', [`Content-Length: ${300 * MIB}`], ''],
      ['chunks', ['Transfer-Encoding: chunked'], `${(300 * MIB).toString(16)}\r\n`],
    ])('has the 413 though it reads at the end: %s', async (_how, lines, first) => {
      const client = await gateway.begin(lines);
      client.socket.pause();
      client.socket.write(first);
      await client.pour(300 * MIB);
      client.socket.end();
      client.socket.resume();
      expect(await client.ended).toBe('end');
      expect(client.received()).toMatch(/^HTTP\/1\.1 413 .*connection: close.*"limit_exceeded"/is);
      expect(gateway.fake.whole).toEqual([]);
    });

    it('has it with fetch and with curl', async () => {
      expect(await outcome(gateway.upload(pieces(200)))).toEqual([413, 'limit_exceeded']);
      const args = [
        '-sS',
        '-X',
        'POST',
        '-T',
        '-',
        '-H',
        'Authorization: Bearer uploader',
        '-H',
        'Content-Type: application/octet-stream',
      ];
      const curl = execFile('curl', [...args, gateway.url], { encoding: 'utf8' });
      let output = '';
      curl.stdout?.on('data', (text: string) => {
        output += text;
      });
      const body = Readable.from(Array.from({ length: 200 }, () => Buffer.alloc(MIB)));
      body.pipe(curl.stdin as NodeJS.WritableStream).on('error', () => body.destroy());
      const [code] = await once(curl, 'close');
      expect([code, JSON.parse(output).code]).toEqual([0, 'limit_exceeded']);
    });

    it('is asked for its body only when that is wanted', async () => {
      const expecting = ['Expect: 100-continue', 'Content-Length: 5'];
      const refused = await gateway.begin([...expecting, 'Content-Type: text/plain']);
      await eventually(() => refused.received() !== '');
      expect(refused.received()).toMatch(/^HTTP\/1\.1 415 .*connection: close/is);
      gateway.fake.refusal = fileErrors.file_name_taken();
      const taken = await gateway.begin(expecting);
      await eventually(() => taken.received() !== '');
      expect(taken.received()).toMatch(/^HTTP\/1\.1 409 /);
      gateway.fake.refusal = undefined;
      const wanted = await gateway.begin(expecting);
      await eventually(() => wanted.received() !== '');
      expect(wanted.received()).toBe('HTTP/1.1 100 Continue\r\n\r\n');
      wanted.socket.write('12345');
      await eventually(() => wanted.received().includes('HTTP/1.1 200 '));
      expect(wanted.received().match(/100 Continue/g)).toHaveLength(1);
      for (const { socket } of [refused, taken, wanted]) socket.destroy();
    });
  });

  describe('a client that goes away', () => {
    it.each([
      ['FIN', 'a length'],
      ['FIN', 'chunks'],
      ['RST', 'a length'],
      ['RST', 'chunks'],
    ])('by %s leaves a broken body and no defect, sent with %s', async (how, framing) => {
      const before = { ...gateway.fake };
      for (let i = 1; i <= 10; i += 1) {
        const lines = framing === 'chunks' ? ['Transfer-Encoding: chunked'] : [`Content-Length: ${MIB}`];
        const { socket, pour, ended } = await gateway.begin(lines);
        if (framing === 'chunks') socket.write(`${MIB.toString(16)}\r\n`);
        await pour(Math.floor((MIB * i) / 11));
        await eventually(() => gateway.fake.received === before.received + i);
        if (how === 'FIN') socket.end();
        else socket.resetAndDestroy();
        await ended;
      }
      await eventually(() => gateway.fake.broken === before.broken + 10);
      expect(gateway.fake.whole).toEqual([]);
      expect((await gateway.upload(BYTES)).status).toBe(200);
      await eventually(() => gateway.logged.some(({ status }) => status === 200));
      const failures = gateway.logged.filter(({ msg, status }) => msg !== 'request' || Number(status) >= 500);
      expect(failures).toEqual([]);
    });

    it('with nonsense where a chunk should be leaves a broken body', async () => {
      const { socket, ended, received } = await gateway.begin(['Transfer-Encoding: chunked']);
      socket.write('5\r\n12345\r\n');
      await eventually(() => gateway.fake.received === 1);
      const startedAt = performance.now();
      socket.write('nonsense\r\n');
      await eventually(() => gateway.fake.broken === 1);
      expect(performance.now() - startedAt).toBeLessThan(2_000);
      socket.end();
      await ended;
      expect(received()).toMatch(/^HTTP\/1\.1 400 /);
    });
  });
});
