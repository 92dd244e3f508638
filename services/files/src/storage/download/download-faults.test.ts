import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient, type RawClient } from '@latchkey/testkit/network/raw-client';
import { startTcpProxy } from '@latchkey/testkit/network/tcp-proxy';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type DownloadServer, REQUEST_ID, startDownloadServer } from '../../testing/download-server.ts';
import { storeFile } from '../../testing/stored-file.ts';
import { useTestFiles } from '../../testing/test-files.ts';
import type { ObjectStore } from '../object-store/object-store.ts';
import { createDownloadHandler } from './download-handler.ts';

const MIB = 1024 * 1024;
/** More than the buffers of a connection hold. */
const BYTES = randomBytes(24 * MIB);
/** Longer than a busy machine delays a process. */
const STALL_TIMEOUT_MS = 1_000;
/** Downloads of the server, of which one network, and one file, may use 2. */
const LIMIT = 8;

const files = useTestFiles();
const createUrl = (id: string) => files.ctx.downloadUrls.create(id, new Date(files.clock.now().getTime() + 60_000));
let urls: string[];
let url: string;
beforeAll(async () => {
  const ref = files.createOwned();
  urls = await Promise.all(Array.from({ length: 4 }, async () => createUrl(await storeFile(files, ref, { bytes: BYTES }))));
  url = urls[0] as string;
});

/** Replaces the body of an object, for this test. */
let reading: ((body: Readable) => Readable | Promise<Readable>) | undefined;
let opened: Readable[];
let openedMax: number;
let server: DownloadServer;
const clients: RawClient[] = [];
beforeEach(async () => {
  [opened, openedMax, reading] = [[], 0, undefined];
  await serve();
});
afterEach(async () => {
  for (const { socket } of clients.splice(0)) socket.destroy();
  await server.close();
});

async function serve(stallTimeoutMs?: number): Promise<void> {
  await server?.close();
  const changeStore = (store: ObjectStore): Partial<ObjectStore> => ({
    async read(key, range) {
      const body = (await store.read(key, range)) as Readable;
      opened.push(body);
      openedMax = Math.max(openedMax, opened.filter(({ destroyed }) => !destroyed).length);
      return reading ? reading(body) : body;
    },
  });
  const { ctx } = files.connect({ changeStore, limits: { downloadsMax: LIMIT } });
  server = await startDownloadServer(createDownloadHandler(ctx, stallTimeoutMs));
}

/** Another source instead of the object. */
const insteadOf = (source: () => Readable) => (body: Readable) => {
  body.destroy();
  return source();
};

/** Sends requests on a new connection and reads nothing. */
async function requestWithoutReading({ count = 1, from = 'a network', of = url } = {}): Promise<RawClient> {
  const client = await openRawClient(server.port);
  clients.push(client);
  client.socket.on('error', () => undefined).pause();
  const before = opened.length;
  client.socket.write(`GET ${new URL(of).pathname} HTTP/1.1\r\nHost: x\r\nX-Test-Network: ${from}\r\n\r\n`.repeat(count));
  await eventually(() => opened.length > before);
  return client;
}

const firstBytes = (of = url, from = 'a network') =>
  server.fetch(of, { headers: { range: 'bytes=0-9', 'x-test-network': from } });
const allClosed = () => opened.every((body) => body.closed) && server.underWay() === 0;

describe('a store that fails', () => {
  it('gives 503 when the object fails to open, and then takes no slot', async () => {
    reading = (body) => {
      body.destroy();
      throw new Error('EIO: secret path');
    };
    for (let i = 0; i <= LIMIT; i += 1) {
      const { status, headers, body } = await server.fetch(url);
      expect(status).toBe(503);
      expect(headers).toMatchObject({ 'retry-after': '2', 'content-type': 'application/json; charset=utf-8' });
      const message = `The service is temporarily unavailable. Error id: ${REQUEST_ID}`;
      expect(JSON.parse(body.toString())).toEqual({ success: false, code: 'INTERNAL_ERROR', message });
    }
    reading = undefined;
    for (let i = 0; i <= LIMIT; i += 1) expect((await firstBytes()).status).toBe(206);
  });

  it.each([
    [
      'fails in the middle',
      async function* () {
        yield BYTES.subarray(0, 1000);
        throw new Error('EIO');
      },
    ],
    [
      'is shorter than the file',
      async function* () {
        yield BYTES.subarray(0, 1000);
      },
    ],
  ])('cuts the connection when the object %s', async (_what, source) => {
    reading = insteadOf(() => Readable.from(source()));
    const { body, whole } = await server.fetch(url);
    expect([body.byteLength <= 1000, whole]).toEqual([true, false]);
    await eventually(allClosed);
  });

  it('sends no byte more than announced when its object is longer', async () => {
    const first = Promise.withResolvers<void>();
    const pieces = async function* () {
      yield BYTES.subarray(0, 60);
      await first.promise;
      yield BYTES.subarray(60, 200);
    };
    reading = insteadOf(() => Readable.from(pieces()));
    const headers = { range: 'bytes=0-99' };
    const { status, body, whole } = await server.fetch(url, { headers, onFirstBytes: first.resolve });
    expect([status, body.byteLength, whole]).toEqual([206, 60, false]);
  });

  it('sends the last bytes when its object has ended, as the client may close the connection then', async () => {
    let [received, receivedBeforeEnd] = [false, true];
    const pieces = async function* () {
      yield BYTES.subarray(0, 100);
      await delay(20);
      receivedBeforeEnd = received;
    };
    reading = insteadOf(() => Readable.from(pieces()));
    const onFirstBytes = () => {
      received = true;
    };
    const { whole } = await server.fetch(url, { headers: { range: 'bytes=0-99' }, onFirstBytes });
    expect([whole, receivedBeforeEnd]).toEqual([true, false]);
  });

  it('is cut off when it stalls', async () => {
    await serve(100);
    reading = insteadOf(() => new Readable({ read: () => undefined }));
    expect((await server.fetch(url)).whole).toBe(false);
  });

  it('gives 503 while the database is away', async () => {
    const proxy = await startTcpProxy(files.url);
    const cut = await startDownloadServer(createDownloadHandler(files.connect({ url: proxy.url }).ctx));
    await proxy.cut();
    const { status, headers } = await cut.fetch(url);
    expect([status, headers['retry-after']]).toEqual([503, '2']);
    await proxy.restore();
    expect((await cut.fetch(url, { headers: { range: 'bytes=0-0' } })).status).toBe(206);
    await cut.close();
    await proxy.close();
  });
});

describe('a reader', () => {
  it('that does not read costs bounded memory, and is cut off', async () => {
    await serve(STALL_TIMEOUT_MS);
    await requestWithoutReading();
    const [body] = opened as [Readable & { bytesRead: number }];
    await eventually(() => allClosed(), { timeoutMs: 10_000 });
    // The bytes in the buffers of both ends of the connection, and no more of the file.
    expect(body.bytesRead).toBeLessThan(16 * MIB);
  });

  it('that goes away while the file is being opened leaves nothing open', async () => {
    const opening = Promise.withResolvers<void>();
    reading = async (body) => {
      await opening.promise;
      return body;
    };
    const { socket } = await requestWithoutReading();
    socket.resetAndDestroy();
    await eventually(() => socket.closed);
    opening.resolve();
    await eventually(allClosed);
  });

  it('that is slow gets all of it', async () => {
    await serve(STALL_TIMEOUT_MS);
    const { socket } = await requestWithoutReading();
    const startedAt = performance.now();
    let [received, sinceBreak] = [0, 0];
    socket.on('data', (chunk: Buffer) => {
      received += chunk.length;
      sinceBreak += chunk.length;
      if (sinceBreak < MIB) return;
      sinceBreak = 0;
      // Slowness is what is tested: 24 pauses are longer than the time-out.
      socket.pause();
      setTimeout(() => socket.resume(), 60);
    });
    socket.resume();
    await eventually(() => received > BYTES.byteLength, { timeoutMs: 10_000 });
    expect(performance.now() - startedAt).toBeGreaterThan(STALL_TIMEOUT_MS);
    await eventually(() => server.underWay() === 0);
  });

  it('that requests several downloads on one connection has one open at a time', async () => {
    const { socket } = await requestWithoutReading({ count: 3 });
    expect((await firstBytes()).status).toBe(206);
    expect(opened.length).toBe(2);
    let received = 0;
    socket.on('data', (text: string) => {
      received += text.length;
    });
    socket.resume();
    await eventually(() => received > 3 * BYTES.byteLength, { timeoutMs: 20_000 });
    expect([opened.length, openedMax]).toEqual([4, 2]);
  });
});

describe('downloads beyond the limit', () => {
  it('are rejected, until one has ended', async () => {
    for (let i = 0; i < LIMIT; i += 1) await requestWithoutReading({ from: `network ${i >> 1}`, of: urls[i >> 1] as string });
    // Of a fifth network and file, so that no other limit is met.
    const other = createUrl(await storeFile(files, files.createOwned()));
    const { status, headers, body } = await firstBytes(other, 'network 4');
    expect([status, headers['retry-after'], JSON.parse(body.toString()).code]).toEqual([503, '2', 'INTERNAL_ERROR']);
    expect((await server.fetch(url, { method: 'HEAD' })).status).toBe(200);
    expect(opened.length).toBe(LIMIT);
    clients[0]?.socket.destroy();
    await eventually(async () => (await firstBytes(other, 'network 4')).status === 206);
  });

  it.each([
    [
      'network',
      'downloads-at-once-ip',
      [
        [0, 1],
        [1, 1],
      ],
      [2, 1],
      [0, 2],
    ],
    [
      'file',
      'downloads-at-once-file',
      [
        [0, 1],
        [0, 2],
      ],
      [0, 3],
      [2, 1],
    ],
  ] as const)('are rejected per %s beyond a quarter, and no others', async (_what, policy, open, beyond, other) => {
    const toRequest = ([file, network]: readonly [number, number]) => [urls[file] as string, `network ${network}`] as const;
    for (const [of, from] of open.map(toRequest)) await requestWithoutReading({ of, from });
    const { status, headers, body } = await firstBytes(...toRequest(beyond));
    expect([status, JSON.parse(body.toString()).code]).toEqual([429, 'rate_limit_reached']);
    const fields = { 'ratelimit-policy': `"${policy}";q=2;w=10`, ratelimit: `"${policy}";r=0;t=10` };
    expect(headers).toMatchObject({ 'retry-after': '10', ...fields });
    expect((await firstBytes(...toRequest(other))).status).toBe(206);
    clients[0]?.socket.destroy();
    await eventually(async () => (await firstBytes(...toRequest(beyond))).status === 206);
  });
});
