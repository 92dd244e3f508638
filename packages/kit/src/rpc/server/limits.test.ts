import { once } from 'node:events';
import { constants } from 'node:http2';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient } from '@latchkey/testkit/network/raw-client';
import { describe, expect, it } from 'vitest';
import { DELETE_APPLICATION as CALL, EMPTY, openSession, openTcp, startCall } from '../../testing/http2.ts';
import { AUTHORIZATION, heldRoute, startTestServer } from '../../testing/servers.ts';

describe.each(['url', 'grpcUrl'] as const)('connections (%s)', (port) => {
  it('are closed beyond the limit, and beyond the share of one address', async () => {
    const server = await startTestServer([], { limits: { connections: 5, connectionsPerIp: 3 } });
    const open = (address: string) => Array.from({ length: 8 }, () => openTcp(server[port], address));
    const closed = (sockets: Socket[]) => sockets.filter((socket) => socket.closed).length;
    const first = open('127.0.0.2');
    await eventually(() => expect(closed(first)).toBe(5));
    const second = open('127.0.0.1');
    await eventually(() => expect(closed(second)).toBe(6));
    for (const socket of first) socket.destroy();
    await eventually(async () => {
      const socket = openTcp(server[port]);
      await once(socket, 'connect');
      await delay(50);
      return !socket.closed;
    });
  });

  it('are closed when the client is silent', async () => {
    const server = await startTestServer([], { limits: { headMs: 100 } });
    await once(openTcp(server[port]), 'close');
  });
});

describe('a body over HTTP/1.1', () => {
  it.each([
    ['a unary call', CALL, 'application/proto'],
    ['a call of gRPC-Web', CALL, 'application/grpc-web+proto'],
  ])('that does not come in time does not hold its connection: %s', async (_what, path, type) => {
    const { port } = await startTestServer([heldRoute().route], { limits: { bodyMs: 100 } });
    const { socket, ended } = await openRawClient(port);
    const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${AUTHORIZATION}\r\n`;
    socket.write(`${head}Content-Type: ${type}\r\nContent-Length: 50000\r\n\r\n`);
    socket.once('end', () => socket.end());
    const bytes = setInterval(() => socket.write('{'), 10);
    expect(await ended.finally(() => clearInterval(bytes))).toMatch(/end|ECONNRESET|EPIPE/);
  });

  it('that comes in time is answered later', async () => {
    const { route, signals, release } = heldRoute();
    const { port } = await startTestServer([route], { limits: { bodyMs: 50 } });
    const { socket, received } = await openRawClient(port);
    const head = `POST ${CALL} HTTP/1.1\r\nHost: x\r\nAuthorization: ${AUTHORIZATION}\r\n`;
    socket.write(`${head}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`);
    await eventually(() => signals.length === 1);
    setTimeout(release, 150);
    await eventually(() => expect(received()).toMatch(/^HTTP\/1\.1 200 /));
  });
});

describe('a session of HTTP/2', () => {
  it('is closed when idle, and not while a call is under way', async () => {
    const { route, signals, release } = heldRoute();
    const { grpcUrl } = await startTestServer([route], { limits: { idleMs: 100 } });
    const [idle, busy] = [openSession(grpcUrl), openSession(grpcUrl)];
    const closed = once(idle, 'close');
    const { stream } = startCall(busy, CALL, EMPTY);
    await eventually(() => signals.length === 1);
    await closed;
    // Twice as long again.
    await once(openSession(grpcUrl), 'close');
    expect(busy.closed).toBe(false);
    release();
    await once(stream, 'close');
    await once(busy, 'close');
  });

  it('stays after its preface, and allows 256 concurrent calls', async () => {
    const { grpcUrl } = await startTestServer([], { limits: { headMs: 100 } });
    const session = openSession(grpcUrl);
    await once(session, 'remoteSettings');
    await once(openTcp(grpcUrl), 'close');
    expect([session.closed, session.remoteSettings.maxConcurrentStreams]).toEqual([false, 256]);
  });

  it('frees its connection though its client never ends its own side', async () => {
    const { grpcUrl } = await startTestServer([], { limits: { idleMs: 100, connections: 1 } });
    const { socket } = await openRawClient(Number(new URL(grpcUrl).port));
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0');
    await eventually(async () => {
      const session = openSession(grpcUrl);
      const rejected = once(session, 'close').then(() => Promise.reject(new Error('no room')));
      await Promise.race([once(session, 'remoteSettings'), rejected]);
    });
  });

  it('cuts off a call whose body never ends, and no watch', async () => {
    const { grpcUrl } = await startTestServer([heldRoute().route], { limits: { callMs: 100 } });
    const session = openSession(grpcUrl);
    const watch = startCall(session, '/grpc.health.v1.Health/Watch', EMPTY);
    const call = startCall(session, CALL);
    call.stream.write('a');
    await eventually(() => expect(call.seen.rstCode).toBe(constants.NGHTTP2_CANCEL));
    const next = startCall(session, CALL);
    await eventually(() => expect(next.seen.isClosed).toBe(true));
    expect([watch.seen.isClosed, watch.seen.bytes > 0]).toEqual([false, true]);
  });
});
