import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { runTransfer, trackConnections } from '@latchkey/kit/http/connections';
import { lingerOnClose } from '@latchkey/kit/http/drain';
import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient } from '@latchkey/testkit/network/raw-client';
import { fastify } from 'fastify';
import { describe, expect, it } from 'vitest';
import { readGatewayConfig } from '../config.ts';
import { stopMsMax } from '../server.ts';
import { startTestGateway } from '../testing/test-gateway.ts';
import { startUploadGateway } from '../testing/upload-gateway.ts';

const REQUEST = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n';

async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.setEncoding('latin1').on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

async function ask(socket: Socket): Promise<string> {
  socket.write(REQUEST);
  const [text] = (await once(socket, 'data')) as [string];
  return text;
}

describe('a gateway that stops with DRAIN_SECONDS', () => {
  it('still accepts connections, is not ready, and closes each after a response', async () => {
    const gateway = await startTestGateway({ env: { DRAIN_SECONDS: '2' } });
    const kept = await open(gateway.port);
    await ask(kept);
    const startedAt = performance.now();
    const stopped = gateway.service.stop();
    let answered = 0;
    while (performance.now() - startedAt < 700) {
      const socket = answered === 0 ? kept : await open(gateway.port);
      expect(await ask(socket)).toMatch(/^HTTP\/1\.1 200 OK\r\n.*connection: close\r\n/is);
      answered += 1;
    }
    expect((await fetch(`${gateway.baseUrl}/readyz`)).status).toBe(503);
    await stopped;
    expect(answered).toBeGreaterThan(1);
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(2_000);
    await expect(fetch(`${gateway.baseUrl}/healthz`)).rejects.toThrow('fetch failed');
  });

  it.each([
    ['uploads after it', { UPLOAD_DEADLINE_SECONDS: '180', DRAIN_SECONDS: '10' }, 10 + 180 + 15 + 14],
    ['bodies that come slowly', { UPLOAD_DEADLINE_SECONDS: '1' }, 60],
  ])('has more time than %s', (_what, env, seconds) => {
    expect(stopMsMax(readGatewayConfig({ REDIS_URL: 'redis://127.0.0.1', ...env }))).toBeGreaterThan(seconds * 1_000);
  });
});

it('cuts requests under way at last, and those that carry files later', async () => {
  const app = fastify({ http: {} });
  app.get('/rest', () => new Promise(() => undefined));
  app.get('/file', (request) => runTransfer(request.raw.socket, () => new Promise(() => undefined)));
  const arrived: string[] = [];
  app.addHook('onRequest', async ({ url }) => void arrived.push(url));
  lingerOnClose(app, trackConnections(app.server), { underWayMsMax: 400, transferMsMax: 1_200 });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const order: string[] = [];
  for (const path of ['/file', '/rest']) {
    const { socket, ended } = await openRawClient(port);
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    socket.once('end', () => socket.end());
    void ended.then(() => order.push(path));
  }
  await eventually(() => arrived.length === 2);
  const startedAt = performance.now();
  await app.close();
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(1_200);
  await eventually(() => order.length === 2);
  expect(order).toEqual(['/rest', '/file']);
});

describe.each(['direct', 'remote'] as const)('a gateway that stops while a file is uploaded, passed on %s', (kind) => {
  it('lets it end, and closes its connection', async () => {
    const uploads = await startUploadGateway(kind);
    const { socket, received } = await uploads.begin(['Content-Length: 10']);
    await eventually(() => uploads.fake.received === 1);
    socket.write('12345');
    const stopped = uploads.service.stop();
    await eventually(() =>
      fetch(`${uploads.baseUrl}/healthz`).then(
        () => false,
        () => true,
      ),
    );
    socket.write('67890');
    await once(socket, 'data');
    expect(received()).toMatch(/^HTTP\/1\.1 200 .*connection: close/is);
    await stopped;
    await uploads.stopDataPath();
  });

  it('sends an error to a client that is still sending', async () => {
    const uploads = await startUploadGateway(kind);
    uploads.fake.byteSizeMax = 1;
    const client = await uploads.begin(['Content-Length: 100000000']);
    client.socket.pause();
    const poured = client.pour(100_000_000);
    await eventually(() => uploads.fake.received === 1);
    const stopped = uploads.service.stop();
    await poured;
    client.socket.end();
    client.socket.resume();
    expect(await client.ended).toBe('end');
    expect(client.received()).toMatch(/^HTTP\/1\.1 413 /);
    await stopped;
    await uploads.stopDataPath();
  });
});
