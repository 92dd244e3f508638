import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { eventually } from '@latchkey/testkit/eventually';
import { startTcpProxy } from '@latchkey/testkit/tcp-proxy';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type DownloadServer, REQUEST_ID, startDownloadServer } from '../../testing/download-server.ts';
import { storeFile } from '../../testing/stored-file.ts';
import { SECRET_KEY, type TestFiles, useTestFiles } from '../../testing/test-files.ts';
import type { ObjectStore } from '../object-store/object-store.ts';
import { createDownloadHandler } from './download-handler.ts';
import { createDownloadUrls } from './download-url.ts';

const MIB = 1024 * 1024;
/** More than the buffers of a connection hold. */
const BYTES = randomBytes(24 * MIB);
/** Long beside what a busy machine keeps a process waiting. */
const STALL_TIMEOUT_MS = 1_000;
/** A pause of the slow reader: 24 of them are more than twice as long as the patience. */
const BREAK_MS = 100;
const downloadUrls = createDownloadUrls({ secretKey: SECRET_KEY, publicUrl: 'http://localhost' });

const files = useTestFiles();
let url: string;
let id: string;
let ref: ReturnType<TestFiles['createOwned']>;
beforeAll(async () => {
  ref = files.createOwned();
  id = await storeFile(files, ref, { bytes: BYTES });
  url = downloadUrls.create(id, new Date(files.clock.now().getTime() + 60_000));
});

/** What the store does otherwise, for this test. */
let reading: ((body: Readable) => Readable | Promise<Readable>) | undefined;
let opened: Readable[];
let server: DownloadServer;
const sockets: Socket[] = [];
beforeEach(async () => {
  opened = [];
  reading = undefined;
  await serve();
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await server.close();
});

/** Serves the file, with the patience of a deployment unless another is given. */
async function serve(options: { stallTimeoutMs?: number } = {}): Promise<void> {
  await server?.close();
  const aroundStore = (store: ObjectStore): ObjectStore => ({
    ...store,
    async read(key, range) {
      const body = (await store.read(key, range)) as Readable;
      opened.push(body);
      return reading ? reading(body) : body;
    },
  });
  const ctx = { ...files.connect({ aroundStore }).ctx, downloadUrls };
  server = await startDownloadServer(createDownloadHandler(ctx, options.stallTimeoutMs));
}

/** Another source in place of the object. */
const insteadOf = (source: () => Readable) => (body: Readable) => {
  body.destroy();
  return source();
};

/** Sends a request on a connection of its own and reads nothing. */
async function requestWithoutReading(): Promise<Socket> {
  const socket = connect(server.port, '127.0.0.1');
  sockets.push(socket);
  socket.on('error', () => undefined).pause();
  socket.write(`GET ${new URL(url).pathname} HTTP/1.1\r\nHost: x\r\n\r\n`);
  await eventually(() => opened.length === 1);
  return socket;
}

const allClosed = () => opened.every((body) => body.closed) && server.underWay() === 0;

describe('a store that fails', () => {
  it('gives 503 when the object fails to open', async () => {
    reading = (body) => {
      body.destroy();
      throw new Error('EIO: secret path');
    };
    const { status, headers, body } = await server.fetch(url);
    expect(status).toBe(503);
    expect(headers).toMatchObject({ 'retry-after': '2', 'content-type': 'application/json; charset=utf-8' });
    const message = `The service is temporarily unavailable. Error id: ${REQUEST_ID}`;
    expect(JSON.parse(body.toString())).toEqual({ success: false, code: 'INTERNAL_ERROR', message });
  });

  it('cuts the connection when it fails in the middle', async () => {
    reading = (body) =>
      Readable.from(
        (async function* () {
          for await (const chunk of body) {
            yield chunk;
            throw new Error('EIO');
          }
        })(),
      );
    const { status, body, whole } = await server.fetch(url);
    expect([status, whole]).toEqual([200, false]);
    expect(body.byteLength).toBeLessThan(BYTES.byteLength);
    await eventually(allClosed);
  });

  it('cuts the connection when its object is shorter than the file', async () => {
    reading = insteadOf(() => Readable.from([BYTES.subarray(0, 1000)]));
    const { body, whole } = await server.fetch(url);
    expect([body.byteLength, whole]).toEqual([1000, false]);
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

  it('is given up when it stalls', async () => {
    await serve({ stallTimeoutMs: STALL_TIMEOUT_MS });
    reading = insteadOf(() => new Readable({ read: () => undefined }));
    const { whole } = await server.fetch(url);
    expect(whole).toBe(false);
  });
});

describe('a reader', () => {
  it('that does not read costs bounded memory, and is cut off', async () => {
    await serve({ stallTimeoutMs: STALL_TIMEOUT_MS });
    const socket = await requestWithoutReading();
    const [body] = opened as [Readable & { bytesRead: number }];
    await eventually(() => allClosed(), { timeoutMs: 10_000 });
    // What the buffers of both ends of the connection took, and no more of the file.
    expect(body.bytesRead).toBeLessThan(16 * MIB);
    const received: number[] = [];
    socket.on('data', (chunk: Buffer) => received.push(chunk.byteLength)).resume();
    await new Promise((resolve) => socket.once('close', resolve));
    expect(received.reduce((sum, n) => sum + n, 0)).toBeLessThan(BYTES.byteLength);
  });

  it('that goes away while the file is being opened leaves nothing open', async () => {
    const opening = Promise.withResolvers<void>();
    reading = async (body) => {
      await opening.promise;
      return body;
    };
    const socket = await requestWithoutReading();
    socket.resetAndDestroy();
    await eventually(() => socket.closed);
    opening.resolve();
    await eventually(allClosed);
  });

  it('that is slow gets all of it', async () => {
    await serve({ stallTimeoutMs: STALL_TIMEOUT_MS });
    const socket = await requestWithoutReading();
    const startedAt = performance.now();
    let received = 0;
    let sinceBreak = 0;
    socket.on('data', (chunk: Buffer) => {
      received += chunk.byteLength;
      sinceBreak += chunk.byteLength;
      if (sinceBreak < MIB) return;
      sinceBreak = 0;
      // What is tested is slowness.
      socket.pause();
      setTimeout(() => socket.resume(), BREAK_MS);
    });
    socket.resume();
    await eventually(() => received > BYTES.byteLength, { timeoutMs: 10_000 });
    expect(performance.now() - startedAt).toBeGreaterThan(STALL_TIMEOUT_MS);
    await eventually(() => server.underWay() === 0);
  });
});

describe('a database that is away', () => {
  it('gives 503', async () => {
    const proxy = await startTcpProxy(files.url);
    const { ctx } = files.connect({ url: proxy.url });
    const cut = await startDownloadServer(createDownloadHandler({ ...ctx, downloadUrls }));
    await proxy.cut();
    const { status, headers } = await cut.fetch(url);
    expect([status, headers['retry-after']]).toEqual([503, '2']);
    await proxy.restore();
    expect((await cut.fetch(url, { headers: { range: 'bytes=0-0' } })).status).toBe(206);
    await cut.close();
    await proxy.close();
  });
});
