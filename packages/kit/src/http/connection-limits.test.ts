import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { eventually } from '@latchkey/testkit/eventually';
import { expect, it, onTestFinished } from 'vitest';
import { trustProxies } from './client-ip.ts';
import { limitConnections } from './connection-limits.ts';

async function listen(trusted: readonly string[] = []) {
  const server = createServer((_, res) => void res.end('ok'));
  limitConnections(server, { total: 100, perNetwork: 3, trust: trustProxies(trusted) });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return (localAddress: string) => {
    const socket = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', localAddress });
    socket.on('error', () => undefined);
    onTestFinished(() => void socket.destroy());
    return socket;
  };
}

async function isServed(socket: ReturnType<typeof connect>): Promise<boolean> {
  const answered = once(socket, 'data').then(() => true);
  const closed = once(socket, 'close').then(() => false);
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  return Promise.race([answered, closed]);
}

it('silent connections of one address keep no other address out, and their places are taken again when they are gone', async () => {
  const open = await listen();
  const silent = Array.from({ length: 10 }, () => open('127.0.0.1'));
  await eventually(() => expect(silent.filter(({ closed }) => closed)).toHaveLength(7));
  expect(await isServed(open('127.0.0.1'))).toBe(false);
  expect(await isServed(open('127.0.0.2'))).toBe(true);
  for (const socket of silent) socket.destroy();
  await eventually(() => isServed(open('127.0.0.1')));
});

it('a proxy that is trusted has more connections than one address, as it stands for many', async () => {
  const open = await listen(['127.0.0.3']);
  const served = await Promise.all(Array.from({ length: 10 }, () => isServed(open('127.0.0.3'))));
  expect(served).toEqual(Array(10).fill(true));
});
