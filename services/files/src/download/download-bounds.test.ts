import { randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient, type RawClient } from '@latchkey/testkit/raw-client';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ObjectStore } from '../object-store/object-store.ts';
import { type DownloadServer, startDownloadServer } from '../testing/download-server.ts';
import { storeFile } from '../testing/stored-file.ts';
import { SECRET_KEY, startTestFiles, type TestFiles } from '../testing/test-files.ts';
import { createDownloadHandler } from './download-handler.ts';
import { createDownloadUrls } from './download-url.ts';

/** More than the buffers of a connection hold. */
const BYTES = randomBytes(24 * 1024 * 1024);
const downloadUrls = createDownloadUrls({ secretKey: SECRET_KEY, publicUrl: 'http://localhost' });

let files: TestFiles;
let url: string;
beforeAll(async () => {
  files = await startTestFiles();
  const id = await storeFile(files, files.createOwned(), { bytes: BYTES });
  url = downloadUrls.create(id, new Date(files.clock.now().getTime() + 60_000));
});
afterAll(() => files.stop());

let opened: Readable[];
let mostAtOnce: number;
let failing: boolean;
let server: DownloadServer;
const clients: RawClient[] = [];
beforeEach(async () => {
  [opened, mostAtOnce, failing] = [[], 0, false];
  const aroundStore = (store: ObjectStore): ObjectStore => ({
    ...store,
    async read(key, range) {
      if (failing) throw new Error('EIO');
      const body = (await store.read(key, range)) as Readable;
      opened.push(body);
      mostAtOnce = Math.max(mostAtOnce, opened.filter(({ destroyed }) => !destroyed).length);
      return body;
    },
  });
  const { ctx } = files.connect({ aroundStore, env: { DOWNLOADS_AT_ONCE: '2' } });
  server = await startDownloadServer(createDownloadHandler({ ...ctx, downloadUrls }));
});
afterEach(async () => {
  for (const { socket } of clients.splice(0)) socket.destroy();
  await server.close();
});

/** Sends as many requests at once on a connection of its own and reads nothing. */
async function requestWithoutReading(count = 1): Promise<RawClient> {
  const client = await openRawClient(server.port);
  clients.push(client);
  client.socket.pause();
  const before = opened.length;
  client.socket.write(`GET ${new URL(url).pathname} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(count));
  await eventually(() => opened.length > before);
  return client;
}

describe('downloads beyond those that may be open at once', () => {
  it('are refused, and taken again when one has ended', async () => {
    const client = await requestWithoutReading();
    await requestWithoutReading();
    const { status, headers, body } = await server.fetch(url);
    expect([status, headers['retry-after'], JSON.parse(body.toString()).code]).toEqual([503, '2', 'INTERNAL_ERROR']);
    expect((await server.fetch(url, { method: 'HEAD' })).status).toBe(200);
    expect(opened.length).toBe(2);
    client.socket.destroy();
    await eventually(async () => (await server.fetch(url)).whole && opened.length === 3);
  });

  it('are not those that failed, or ended, before', async () => {
    failing = true;
    for (let i = 0; i < 3; i += 1) expect((await server.fetch(url)).status).toBe(503);
    failing = false;
    for (let i = 0; i < 3; i += 1) {
      const { status, body } = await server.fetch(url, { headers: { range: 'bytes=0-9' } });
      expect([status, body.byteLength]).toEqual([206, 10]);
    }
  });
});

describe('a client that asks for several downloads without reading them', () => {
  it('has one opened after the other', async () => {
    const { socket } = await requestWithoutReading(3);
    expect((await server.fetch(url, { headers: { range: 'bytes=0-9' } })).status).toBe(206);
    expect(opened.length).toBe(2);
    let received = 0;
    socket.on('data', (text: string) => {
      received += text.length;
    });
    socket.resume();
    await eventually(() => received > 3 * BYTES.byteLength, { timeoutMs: 20_000 });
    expect([opened.length, mostAtOnce]).toEqual([4, 2]);
  });

  it('has nothing more opened once it is gone', async () => {
    const { socket } = await requestWithoutReading(3);
    socket.resetAndDestroy();
    await eventually(() => server.underWay() === 0);
    expect(opened.length).toBe(1);
  });
});
