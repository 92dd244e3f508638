import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { expect, it, onTestFinished } from 'vitest';
import { startTestGateway } from '../testing/test-gateway.ts';

async function open(env: Readonly<Record<string, string>> = {}) {
  const gateway = await startTestGateway({ redisUrl: (await testRedis()).url, env: { CONNECTIONS_PER_IP: '3', ...env } });
  onTestFinished(() => gateway.service.stop());
  return (localAddress: string): Socket => {
    const socket = connect({ port: gateway.port, host: '127.0.0.1', localAddress });
    socket.on('error', () => undefined).resume();
    onTestFinished(() => void socket.destroy());
    return socket;
  };
}

const openOnes = (sockets: readonly Socket[]) => sockets.filter(({ closed }) => !closed);

it('silent connections of one address keep no other address out', async () => {
  const connectFrom = await open();
  const silent = Array.from({ length: 8 }, () => connectFrom('127.0.0.1'));
  await eventually(() => expect(openOnes(silent)).toHaveLength(3));
  const other = connectFrom('127.0.0.2');
  other.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
  expect(String(await once(other, 'data'))).toMatch(/^HTTP\/1\.1 200/);
});

it('a proxy that is trusted stands for many', async () => {
  const connectFrom = await open({ TRUSTED_PROXIES: '127.0.0.3' });
  const proxied = Array.from({ length: 8 }, () => connectFrom('127.0.0.3'));
  for (const socket of proxied) {
    socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(String(await once(socket, 'data'))).toMatch(/^HTTP\/1\.1 200/);
  }
  expect(openOnes(proxied)).toHaveLength(8);
});
