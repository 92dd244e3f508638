import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { createClient } from '@connectrpc/connect';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { createAuthority } from '@latchkey/testkit/network/certificates';
import { openRawClient } from '@latchkey/testkit/network/raw-client';
import { expect, it, onTestFinished, vi } from 'vitest';
import { EMPTY, openSession, startCall } from '../../testing/http2.ts';
import { memoryLogger } from '../../testing/memory-logger.ts';
import { heldRoute, openTransport, startTcpServer, startTestServer, testRoute } from '../../testing/servers.ts';
import { createPeer } from '../../testing/tls.ts';
import type { ServiceTls } from '../../tls/service-tls.ts';
import { startRpcServer } from './server.ts';

const UNREAD = 'HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n';

/** Longer than streams go on after the last call. */
const LONG_MS = 1_800;

const clientOf = (url: string, tls?: ServiceTls) => createClient(ApplicationService, openTransport(url, undefined, tls));

it.each(['cleartext', 'TLS'])('a stop says on idle connections that nothing was read, and calls go on: %s', async (how) => {
  const authority = how === 'TLS' ? await createAuthority() : undefined;
  const [serving, calling] = authority ? [(await createPeer(authority)).tls, (await createPeer(authority)).tls] : [];
  const { route, signals, release } = heldRoute();
  const { url, port, stop } = await startTestServer([route], { tls: serving });
  const call = clientOf(url, calling).createApplication({});
  await eventually(() => signals.length === 1);
  const secureContext = calling?.context;
  const idle: Socket = secureContext ? connectTls({ port, host: '127.0.0.1', secureContext }) : connect(port, '127.0.0.1');
  onTestFinished(() => void idle.destroy());
  await once(idle, secureContext ? 'secureConnect' : 'connect');
  const stopped = stop();
  expect(Buffer.concat(await idle.toArray()).toString()).toBe(UNREAD);
  release();
  await call;
  await stopped;
});

it('a stop loses no call of a client that another server goes on to serve', async () => {
  const createApplication = vi.fn(async () => ({}));
  const route = testRoute(ApplicationService, { createApplication });
  const [first, second] = [await startTestServer([route]), await startTestServer([route])];
  const balancer = await startBalancer(first.url, second.url);
  const client = clientOf(balancer.url);
  let answered = 0;
  let isOver = false;
  const work = async () => {
    for (; !isOver; answered += 1) await client.createApplication({});
  };
  const working = Promise.all(Array.from({ length: 8 }, work));
  await eventually(() => answered > 50);
  balancer.leave(first.url);
  await first.stop();
  const before = answered;
  await eventually(() => answered > before + 50);
  isOver = true;
  await working;
  // Each ran once.
  expect(createApplication).toHaveBeenCalledTimes(answered);
});

/** Spreads connections over servers until one leaves. */
async function startBalancer(...urls: string[]) {
  const targets = [...urls];
  let turn = 0;
  const { port } = await startTcpServer((socket) => {
    turn += 1;
    const upstream = connect(Number(new URL(targets[turn % targets.length] as string).port), '127.0.0.1');
    upstream.on('error', () => socket.destroy()).on('close', () => socket.destroySoon());
    socket.on('close', () => upstream.destroy());
    socket.pipe(upstream).pipe(socket);
  });
  const leave = (url: string) => void targets.splice(targets.indexOf(url), 1);
  return { url: `${new URL(urls[0] as string).protocol}//127.0.0.1:${port}`, leave };
}

it('a call that begins on an open connection after the stop may take its time', async () => {
  const { route, signals, release } = heldRoute();
  const { url, stop } = await startTestServer([route]);
  const client = clientOf(url);
  // Leaves an idle connection in the pool.
  await client.getApplicationSettings({});
  const stopped = stop();
  const call = client.createApplication({});
  await eventually(() => signals.length === 1);
  setTimeout(release, LONG_MS);
  await call;
  await stopped;
});

it('a stop waits neither for idle connections nor for streams, and refuses new connections', async () => {
  const { url, grpcUrl, stop } = await startTestServer([]);
  const agent = new Agent({ keepAlive: true });
  onTestFinished(() => agent.destroy());
  const [response] = await once(get(`${url}/healthz`, { agent }), 'response');
  response.resume();
  const { socket } = await openRawClient(Number(new URL(grpcUrl).port));
  // A session whose client never ends its side.
  socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  await once(socket, 'data');
  const session = openSession(grpcUrl);
  const watch = startCall(session, '/grpc.health.v1.Health/Watch', EMPTY);
  const reflection = startCall(session, '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo');
  reflection.stream.write(Buffer.from([0, 0, 0, 0, 3, 0x3a, 1, 0x2a]));
  await eventually(() => expect(watch.seen.bytes > 0 && reflection.seen.bytes > 0).toBe(true));
  await stop();
  await expect(fetch(`${url}/healthz`)).rejects.toThrow();
});

it('a start fails, and closes everything, when a port is taken', async () => {
  const { port } = await startTcpServer(() => undefined);
  const { logger } = memoryLogger();
  const base = { routes: [], logger, credentials: [], checkReady: async () => undefined, host: '127.0.0.1' };
  await expect(startRpcServer({ ...base, port: 0, grpcPort: port })).rejects.toThrow('EADDRINUSE');
  await expect(startRpcServer({ ...base, port, grpcPort: 0 })).rejects.toThrow('EADDRINUSE');
});
