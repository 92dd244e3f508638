import { randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient, type RawClient } from '@latchkey/testkit/raw-client';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type DownloadServer, startDownloadServer } from '../../testing/download-server.ts';
import { storeFile } from '../../testing/stored-file.ts';
import { SECRET_KEY, useTestFiles } from '../../testing/test-files.ts';
import type { ObjectStore } from '../object-store/object-store.ts';
import { createDownloadHandler } from './download-handler.ts';
import { createDownloadUrls } from './download-url.ts';

/** More than the buffers of a connection hold. */
const BYTES = randomBytes(24 * 1024 * 1024);
const downloadUrls = createDownloadUrls({ secretKey: SECRET_KEY, publicUrl: 'http://localhost' });

/** Of which one network, and one file, may use 2. */
const AT_ONCE = 8;

const files = useTestFiles();
let urls: string[];
let url: string;
beforeAll(async () => {
  const ref = files.createOwned();
  urls = [];
  for (const name of ['a', 'b', 'c', 'd']) {
    const id = await storeFile(files, ref, { name, bytes: BYTES });
    urls.push(downloadUrls.create(id, new Date(files.clock.now().getTime() + 60_000)));
  }
  [url] = urls as [string];
});

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
  const { ctx } = files.connect({ aroundStore, limits: { downloadsMax: AT_ONCE } });
  server = await startDownloadServer(createDownloadHandler({ ...ctx, downloadUrls }));
});
afterEach(async () => {
  for (const { socket } of clients.splice(0)) socket.destroy();
  await server.close();
});

/** Sends as many requests at once on a connection of its own and reads nothing. */
async function requestWithoutReading({ count = 1, from = 'a network', of = url } = {}): Promise<RawClient> {
  const client = await openRawClient(server.port);
  clients.push(client);
  client.socket.pause();
  const before = opened.length;
  client.socket.write(`GET ${new URL(of).pathname} HTTP/1.1\r\nHost: x\r\nX-Test-Network: ${from}\r\n\r\n`.repeat(count));
  await eventually(() => opened.length > before);
  return client;
}

/** Asks for the first bytes of a file from a network. */
const firstBytes = (of: string, from: string) => server.fetch(of, { headers: { range: 'bytes=0-9', 'x-test-network': from } });

describe('downloads beyond the limit', () => {
  it('are rejected, until one has ended', async () => {
    const all: RawClient[] = [];
    for (let i = 0; i < AT_ONCE; i += 1) {
      all.push(await requestWithoutReading({ from: `network ${i >> 1}`, of: urls[i >> 1] as string }));
    }
    // Of a fifth network and file, so that no other limit is met.
    const id = await storeFile(files, files.createOwned());
    const other = downloadUrls.create(id, new Date(files.clock.now().getTime() + 60_000));
    const { status, headers, body } = await firstBytes(other, 'network 4');
    expect([status, headers['retry-after'], JSON.parse(body.toString()).code]).toEqual([503, '2', 'INTERNAL_ERROR']);
    expect((await server.fetch(url, { method: 'HEAD' })).status).toBe(200);
    expect(opened.length).toBe(AT_ONCE);
    all[0]?.socket.destroy();
    await eventually(async () => (await firstBytes(other, 'network 4')).status === 206);
  });

  it.each([
    ['network', 'downloads-at-once-ip', () => ['network 1', urls[2]], () => ['network 2', urls[0]]],
    ['file', 'downloads-at-once-file', () => ['network 2', urls[0]], () => ['network 1', urls[2]]],
  ] as const)('are rejected per %s beyond a quarter, and no others', async (what, policy, beyond, within) => {
    for (const i of [0, 1]) {
      const one = what === 'network' ? { from: 'network 1', of: urls[i] } : { from: `other ${i}`, of: urls[0] };
      await requestWithoutReading(one as { from: string; of: string });
    }
    const [from, of] = beyond() as [string, string];
    const { status, headers, body } = await firstBytes(of, from);
    expect([status, JSON.parse(body.toString()).code]).toEqual([429, 'rate_limit_reached']);
    expect(headers).toMatchObject({
      'retry-after': '10',
      'ratelimit-policy': `"${policy}";q=2;w=10`,
      ratelimit: `"${policy}";r=0;t=10`,
    });
    const [otherNetwork, otherFile] = within() as [string, string];
    expect((await firstBytes(otherFile, otherNetwork)).status).toBe(206);
    clients[0]?.socket.destroy();
    await eventually(async () => (await firstBytes(of, from)).status === 206);
  });

  it('do not include those that failed or ended', async () => {
    failing = true;
    for (let i = 0; i <= AT_ONCE; i += 1) expect((await server.fetch(url)).status).toBe(503);
    failing = false;
    for (let i = 0; i <= AT_ONCE; i += 1) {
      const { status, body } = await server.fetch(url, { headers: { range: 'bytes=0-9' } });
      expect([status, body.byteLength]).toEqual([206, 10]);
    }
  });
});

describe('a client that requests several downloads without reading', () => {
  it('has one open at a time', async () => {
    const { socket } = await requestWithoutReading({ count: 3 });
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
});
