import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { testRedis } from '@latchkey/testkit/redis';
import { beforeEach, describe, expect, it } from 'vitest';
import { startTestGateway, type TestGateway } from '../testing/test-gateway.ts';

const REQUEST = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n';

let gateway: TestGateway;
beforeEach(async () => {
  gateway = await startTestGateway({ redisUrl: (await testRedis()).url });
});

async function open(): Promise<Socket> {
  const socket = connect(gateway.port, '127.0.0.1');
  socket.setEncoding('latin1').on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

async function ask(socket: Socket): Promise<string> {
  socket.write(REQUEST);
  const [text] = (await once(socket, 'data')) as [string];
  return text;
}

describe('a gateway that stops', () => {
  it('answers a request that comes on a connection that is open, and asks for no more on it', async () => {
    const [used, fresh] = [await open(), await open()];
    await ask(used);
    const stopped = gateway.service.stop();
    for (const socket of [used, fresh]) {
      const closed = once(socket, 'close');
      expect(await ask(socket)).toMatch(/^HTTP\/1\.1 200 OK\r\n.*connection: close\r\n/is);
      await closed;
    }
    await stopped;
  });

  it('does not wait for connections that nobody uses', async () => {
    const sockets = [await open(), await open(), await open()];
    await ask(sockets[0] as Socket);
    // A request that is not whole is none yet.
    sockets[1]?.write(REQUEST.slice(0, -2));
    const closed = Promise.all(sockets.map((socket) => once(socket, 'close')));
    const startedAt = performance.now();
    await gateway.service.stop();
    await closed;
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  });

  it('refuses new connections', async () => {
    await gateway.service.stop();
    await expect(fetch(`${gateway.baseUrl}/healthz`)).rejects.toThrow('fetch failed');
  });
});
