import { once } from 'node:events';
import { eventually } from '@latchkey/testkit/eventually';
import { expect, it } from 'vitest';
import { openTcp } from '../testing/http2.ts';
import { startNodeServer } from '../testing/servers.ts';
import { trustProxies } from './client-ip.ts';
import { limitConnections } from './concurrency-limit.ts';

it('one network has its share of silent connections, and a trusted proxy more', async () => {
  const trust = trustProxies(['127.0.0.3']);
  const { url } = await startNodeServer(
    (_, res) => void res.end('ok'),
    (server) => limitConnections(server, { total: 100, perNetwork: 3, trust }),
  );
  const isServed = async (address: string) => {
    const socket = openTcp(url, address);
    const outcome = Promise.race([once(socket, 'data').then(() => true), once(socket, 'close').then(() => false)]);
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    return outcome;
  };
  const silent = Array.from({ length: 10 }, () => openTcp(url));
  await eventually(() => expect(silent.filter(({ closed }) => closed)).toHaveLength(7));
  expect([await isServed('127.0.0.1'), await isServed('127.0.0.2')]).toEqual([false, true]);
  for (const socket of silent) socket.destroy();
  await eventually(() => isServed('127.0.0.1'));
  const proxied = await Promise.all(Array.from({ length: 10 }, () => isServed('127.0.0.3')));
  expect(proxied).toEqual(Array(10).fill(true));
});
