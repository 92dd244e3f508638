import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createLogger } from '@latchkey/kit/logger';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestGateway, type TestGateway } from '../testing/test-gateway.ts';

let gateway: TestGateway;
let answered = 0;
beforeAll(async () => {
  const write = (line: string) => {
    if (line.includes('"msg":"request"')) answered += 1;
  };
  const env = { RATE_LIMIT_IP_PER_MINUTE: '1000000', CONNECTIONS_MAX: '20' };
  gateway = await startTestGateway({
    redisUrl: (await testRedis()).url,
    env,
    logger: createLogger('gateway', 'info', { write }),
  });
});
afterAll(() => gateway.service.stop());

async function open(): Promise<Socket> {
  const socket = connect(gateway.port, '127.0.0.1');
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

const REQUEST = 'GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n';

describe('a client that sends requests without waiting for answers', () => {
  it('is answered as long as they are not too many at once', async () => {
    const socket = await open();
    let received = '';
    socket.setEncoding('latin1').on('data', (text: string) => {
      received += text;
    });
    const statuses = () => received.match(/HTTP\/1\.1 404/g)?.length ?? 0;
    for (let round = 1; round <= 5; round += 1) {
      socket.write(REQUEST.repeat(80));
      await eventually(() => statuses() === round * 80);
    }
    socket.destroy();
  });

  it('is answered what is accepted, however much it sends, and then told that there is no more', async () => {
    const before = answered;
    const socket = await open();
    let received = '';
    socket.setEncoding('latin1').on('data', (text: string) => {
      received += text;
    });
    const total = 100_000;
    const pump = () => {
      while (socket.writable && socket.bytesWritten < total * REQUEST.length && socket.write(REQUEST.repeat(1_000)));
    };
    socket.on('drain', pump);
    pump();
    await once(socket, 'end');
    expect(received.match(/HTTP\/1\.1 404/g)).toHaveLength(101);
    expect(received.match(/^connection: close/gim)).toHaveLength(1);
    await eventually(() => answered - before === 101);
    expect((await fetch(`${gateway.baseUrl}/healthz`)).status).toBe(200);
  });
});

describe('connections', () => {
  it('are refused past the most that may be open', async () => {
    const sockets = await Promise.all(Array.from({ length: 30 }, open));
    await eventually(() => sockets.filter((socket) => socket.destroyed || socket.readableEnded).length >= 10);
    for (const socket of sockets) socket.destroy();
    await eventually(async () => (await fetch(`${gateway.baseUrl}/healthz`)).status === 200);
  });
});
