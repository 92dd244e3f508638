import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { startNodeServer } from '@latchkey/kit/testing/servers';
import { eventually } from '@latchkey/testkit/eventually';
import { exchangeBytes, openRawClient } from '@latchkey/testkit/network/raw-client';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type DataPathKind, startUploadGateway, type UploadGateway } from './testing/upload-gateway.ts';

const MIB = 1024 * 1024;
const BIG = 64 * MIB;
const BLOCK = Buffer.alloc(MIB, 'x');

/** Requests to the fake files service, and how far it got. */
const seen = { requests: [] as IncomingMessage[], read: 0, closed: 0 };

async function download(req: IncomingMessage, res: ServerResponse, requestId: string): Promise<void> {
  seen.requests.push(req);
  res.once('close', () => {
    seen.closed += 1;
  });
  const name = req.url?.split('/').at(-1);
  if (name === 'unanswered') await once(res, 'close');
  else if (name === 'missing') {
    res.writeHead(404, { 'content-type': 'application/json', 'x-request-id': requestId }).end('{"success":false}');
  } else if (name === 'not-modified') res.writeHead(304, { etag: '"x"' }).end();
  else if (name === 'short') {
    res.writeHead(200, { 'content-length': 10 }).write('12345', () => res.destroy());
  } else {
    const size = name === 'big' ? BIG : 5;
    res.writeHead(206, { 'content-length': size, 'content-range': `bytes 0-${size - 1}/${size}`, 'content-type': 'image/png' });
    if (req.method === 'HEAD') {
      res.end();
      return;
    }
    const body = Readable.from(
      (function* () {
        for (let left = size; left > 0; left -= MIB) {
          seen.read += Math.min(left, MIB);
          yield BLOCK.subarray(0, left);
        }
      })(),
    );
    await pipeline(body, res).catch(() => undefined);
  }
}

describe.each<DataPathKind>(['direct', 'remote'])('a download that is passed on %s', (kind) => {
  let gateway: UploadGateway;
  beforeAll(async () => {
    gateway = await startUploadGateway(kind, { download });
  });
  afterAll(() => gateway.stop());
  const get = (name: string, init: RequestInit = {}) => fetch(`${gateway.baseUrl}/downloads/${name}`, init);

  it('has the response of the files service, for anyone with the URL', async () => {
    const headers = {
      range: 'bytes=0-4',
      'if-range': '"a"',
      'if-none-match': '"b"',
      'if-modified-since': 'x',
      'x-request-id': 'r1',
      authorization: 'Bearer of-a-client',
    };
    const response = await get('a-token', { headers });
    expect([response.status, await response.text()]).toEqual([206, 'xxxxx']);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-length': '5',
      'content-range': 'bytes 0-4/5',
      'content-type': 'image/png',
      'x-request-id': 'r1',
      'x-content-type-options': 'nosniff',
    });
    const { 'x-request-id': _, authorization, ...passedOn } = headers;
    expect(seen.requests.at(-1)?.headers).toMatchObject(passedOn);
    if (kind === 'remote') expect(seen.requests.at(-1)?.headers.authorization).not.toBe(authorization);
  });

  it('may be HEAD, 304 or 404', async () => {
    const head = await get('a-token', { method: 'HEAD' });
    expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([206, '5', '']);
    const unchanged = await get('not-modified');
    expect([unchanged.status, unchanged.headers.get('etag')]).toEqual([304, '"x"']);
    const missing = await get('missing');
    expect([missing.status, await missing.json()]).toEqual([404, { success: false }]);
  });

  it.each([
    'http://127.0.0.1:PORT/downloads/other',
    '//127.0.0.1:PORT/downloads/other',
    '/downloads/..%5chealthz',
    '/downloads/..%2fhealthz',
    `/downloads/${'x'.repeat(201)}`,
  ])('only reaches a token at the files service: %s', async (target) => {
    const asked: string[] = [];
    const { port } = await startNodeServer((req, res) => {
      asked.push(req.url ?? '');
      res.end('secret');
    });
    const before = seen.requests.length;
    const path = target.replace('PORT', String(port));
    const received = await exchangeBytes(gateway.port, `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    expect(asked).toEqual([]);
    // Called directly, it is the files service that has to find no token in it.
    if (kind === 'direct') return;
    expect(received).toMatch(/^HTTP\/1\.1 404 .*"code":"not_found"/s);
    expect(seen.requests).toHaveLength(before);
  });

  it('that breaks off is shorter than declared', async () => {
    await expect((await get('short')).text()).rejects.toThrow();
  });

  it('is read as fast as the client reads, until the client is gone', async () => {
    const client = await openRawClient(gateway.port);
    const closed = seen.closed;
    seen.read = 0;
    client.socket.write('GET /downloads/big HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(client.socket, 'data');
    client.socket.pause();
    let last = -1;
    await eventually(() => {
      const isStill = seen.read === last;
      last = seen.read;
      return isStill;
    });
    expect(seen.read).toBeLessThan(BIG / 2);
    client.socket.destroy();
    await eventually(() => seen.closed > closed);
  });

  it('is cancelled if the client goes away before the response', async () => {
    const client = await openRawClient(gateway.port);
    const [requests, closed] = [seen.requests.length, seen.closed];
    client.socket.write('GET /downloads/unanswered HTTP/1.1\r\nHost: x\r\n\r\n');
    await eventually(() => seen.requests.length > requests);
    client.socket.destroy();
    await eventually(() => seen.closed > closed);
  });

  it('is logged without the secret of its URL', async () => {
    await (await get('a-secret-token')).text();
    await eventually(() => gateway.logged.some(({ route }) => route === '/downloads/:token'));
    expect(JSON.stringify(gateway.logged)).not.toContain('a-secret-token');
  });
});

it('holds at most 128 KiB of a download that its client does not read', async () => {
  const gateway = await startUploadGateway('remote', { download });
  onTestFinished(() => gateway.stop());
  const before = process.memoryUsage().arrayBuffers;
  const clients = await Promise.all(Array.from({ length: 20 }, () => openRawClient(gateway.port)));
  seen.read = 0;
  for (const { socket } of clients) socket.pause().write('GET /downloads/big HTTP/1.1\r\nHost: x\r\n\r\n');
  let last = 0;
  await eventually(() => {
    const isStill = last > clients.length * MIB && seen.read === last;
    last = seen.read;
    return isStill;
  });
  // A paused client has read 64 KiB, and this is its process too.
  expect((process.memoryUsage().arrayBuffers - before) / clients.length / 1024 - 64).toBeLessThan(128);
});

it('starts at most two downloads of a network at a time', async () => {
  const gateway = await startUploadGateway('remote', { download });
  onTestFinished(() => gateway.stop());
  const before = seen.requests.length;
  const clients = await Promise.all(Array.from({ length: 6 }, () => openRawClient(gateway.port)));
  for (const { socket } of clients) socket.write('GET /downloads/unanswered HTTP/1.1\r\nHost: x\r\n\r\n');
  await eventually(() => seen.requests.length === before + 2);
  expect(await (await fetch(`${gateway.baseUrl}/healthz`)).text()).toContain('ok');
  expect(seen.requests).toHaveLength(before + 2);
  clients[0]?.socket.destroy();
  await eventually(() => seen.requests.length === before + 3);
});

it('fails a download with 503 when the files service does not respond', async () => {
  const gateway = await startUploadGateway('remote', { download });
  onTestFinished(() => gateway.stop());
  const response = await fetch(`${gateway.baseUrl}/downloads/unanswered`);
  expect([response.status, response.headers.get('retry-after')]).toEqual([503, '2']);
});

it('fails downloads and uploads with 503 while the files service is away', async () => {
  const gateway = await startUploadGateway('remote');
  await gateway.stopDataPath();
  const response = await fetch(`${gateway.baseUrl}/downloads/a-token`);
  expect([response.status, response.headers.get('retry-after')]).toEqual([503, '2']);
  const upload = await gateway.upload(Buffer.alloc(MIB));
  expect([upload.status, ((await upload.json()) as { code: string }).code]).toEqual([503, 'INTERNAL_ERROR']);
  await gateway.stop();
});
