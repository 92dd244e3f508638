import { once } from 'node:events';
import { type ClientHttp2Session, connect as connectHttp2, constants } from 'node:http2';
import { connect as connectTcp } from 'node:net';
import { createClient } from '@connectrpc/connect';
import { Health, HealthCheckResponse_ServingStatus as Status } from '@latchkey/proto/health/v1/health_pb';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient } from '@latchkey/testkit/raw-client';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CREDENTIAL, startTestServer, testRoute } from '../testing/servers.ts';
import { createServiceTransport } from './transport.ts';

const route = testRoute(ApplicationService, {});
const CHECK = '/grpc.health.v1.Health/Check';
const WATCH = '/grpc.health.v1.Health/Watch';
const REFLECTION = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';
const RESOURCE_EXHAUSTED = '8';
const PER_NETWORK = 20;
const WATCHERS_PER_NETWORK = 50;

/** An empty message, as an envelope of gRPC has it. */
const EMPTY = Buffer.alloc(5);

async function openServer(openMessageMsMax = 60_000) {
  const server = await startTestServer([route], { openMessageMsMax });
  return { ...server, from: (localAddress: string) => openSession(server.grpcUrl, localAddress) };
}

function openSession(url: string, localAddress: string): ClientHttp2Session {
  const session = connectHttp2(url, {
    createConnection: ({ port }) => connectTcp({ port: Number(port), host: '127.0.0.1', localAddress }),
  });
  session.on('error', () => undefined);
  onTestFinished(() => session.destroy());
  return session;
}

/** A call over HTTP/2, and what has come of it so far. */
function call(session: ClientHttp2Session, path: string, body?: Buffer, headers = {}) {
  const stream = session.request({
    [constants.HTTP2_HEADER_METHOD]: 'POST',
    [constants.HTTP2_HEADER_PATH]: path,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...headers,
  });
  const seen = { status: undefined as string | undefined, bytes: 0, isClosed: false };
  const note = (given: Record<string, unknown>) => {
    if (given['grpc-status'] !== undefined) seen.status = String(given['grpc-status']);
  };
  stream
    .on('response', note)
    .on('trailers', note)
    .on('error', () => undefined);
  stream.on('close', () => {
    seen.isClosed = true;
  });
  stream.on('data', (chunk: Buffer) => {
    seen.bytes += chunk.byteLength;
  });
  if (body) stream.end(body);
  return { stream, seen };
}

const UNFINISHED = `POST ${CHECK} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`;
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';

const many = <T>(count: number, make: () => T) => Array.from({ length: count }, make);

describe('calls that anyone may make', () => {
  it.each([CHECK, WATCH, REFLECTION])(
    'are refused beyond the share of one address, and no other address with it: %s',
    async (path) => {
      const { from } = await openServer();
      const session = from('127.0.0.1');
      const calls = many(PER_NETWORK + 5, () => call(session, path));
      const refused = () => calls.filter(({ seen }) => seen.isClosed).map(({ seen }) => seen.status);
      await eventually(() => expect(refused()).toEqual(Array(5).fill(RESOURCE_EXHAUSTED)));
      const { seen } = call(from('127.0.0.2'), CHECK, EMPTY);
      await eventually(() => expect(seen.status).toBe('0'));
      session.destroy();
      const again = from('127.0.0.1');
      await eventually(async () => {
        const { stream, seen: next } = call(again, CHECK, EMPTY);
        await once(stream, 'close');
        expect(next.status).toBe('0');
      });
    },
  );

  it('are not refused to who shows the credential of a service', async () => {
    const { from, url } = await openServer();
    const session = from('127.0.0.1');
    many(PER_NETWORK, () => call(session, CHECK));
    await eventually(async () => {
      const { stream, seen } = call(session, CHECK, EMPTY);
      await once(stream, 'close');
      expect(seen.status).toBe(RESOURCE_EXHAUSTED);
    });
    expect(
      (await fetch(url + CHECK, { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } })).status,
    ).toBe(429);
    const transport = createServiceTransport(url, CREDENTIAL);
    onTestFinished(() => transport.close());
    expect((await createClient(Health, transport).check({})).status).toBe(Status.SERVING);
  });

  it.each([
    [CHECK, undefined],
    [CHECK, EMPTY.subarray(1)],
    [WATCH, undefined],
    [WATCH, EMPTY],
    [REFLECTION, undefined],
  ])('are cut off where their message does not come whole: %s', async (path, begun) => {
    const { from, lines } = await openServer(100);
    const { stream, seen } = call(from('127.0.0.1'), path);
    if (begun) stream.write(begun);
    await eventually(() => expect([seen.isClosed, stream.rstCode]).toEqual([true, constants.NGHTTP2_CANCEL]));
    expect(lines.filter(({ level }) => Number(level) >= 40)).toEqual([]);
  });

  it('that came whole go on: watches, and reflection whose client asks nothing for a while', async () => {
    const { from } = await openServer(100);
    const session = from('127.0.0.1');
    const watch = call(session, WATCH, EMPTY);
    const reflection = call(session, REFLECTION);
    // list_services, of any host.
    const ask = () => reflection.stream.write(Buffer.from([0, 0, 0, 0, 3, 0x3a, 1, 0x2a]));
    ask();
    await eventually(() => expect(watch.seen.bytes > 0 && reflection.seen.bytes > 0).toBe(true));
    const late = call(session, CHECK);
    await once(late.stream, 'close');
    expect([watch.seen.isClosed, reflection.seen.isClosed]).toEqual([false, false]);
    const { bytes } = reflection.seen;
    ask();
    await eventually(() => expect(reflection.seen.bytes).toBe(bytes * 2));
  });

  it('have small messages', async () => {
    const { from, url } = await openServer();
    const message = Buffer.alloc(5 + 5_000);
    message.writeUInt32BE(5_000, 1);
    const { stream, seen } = call(from('127.0.0.1'), CHECK);
    // The end of it does not come, and is not waited for.
    stream.write(message.subarray(0, 100));
    await eventually(() => expect(seen.status).toBe(RESOURCE_EXHAUSTED));
    const body = JSON.stringify({ service: 'x'.repeat(5_000) });
    const answer = await fetch(url + CHECK, { method: 'POST', body, headers: { 'content-type': 'application/json' } });
    expect(answer.status).toBe(429);
  });

  it('over HTTP/1.1 are as few', async () => {
    const { url } = await openServer();
    const clients = await Promise.all(many(PER_NETWORK + 5, () => openRawClient(Number(new URL(url).port))));
    onTestFinished(() => clients.forEach(({ socket }) => void socket.destroy()));
    for (const { socket } of clients) socket.write(UNFINISHED);
    await eventually(() => expect(clients.filter(({ received }) => received().startsWith('HTTP/1.1 429 '))).toHaveLength(5));
  });

  it('that wait on one connection behind another give their places back when it is gone', async () => {
    const { url } = await openServer();
    const port = Number(new URL(url).port);
    const { socket, received } = await openRawClient(port);
    const head = (path: string, type: string, length: number) =>
      `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\nContent-Length: ${length}\r\n\r\n`;
    socket.write(`${head(WATCH, 'application/connect+json', 7)}\0\0\0\0\x02{}`);
    await eventually(() => expect(received()).toContain('SERVING'));
    // One more, as what is asked below may have a place when they come.
    socket.write(`${head(CHECK, 'application/json', 2)}{}`.repeat(PER_NETWORK + 1));
    const check = () => fetch(url + CHECK, { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } });
    await eventually(async () => expect((await check()).status).toBe(429));
    socket.destroy();
    await eventually(async () => expect((await check()).status).toBe(200));
    // All of them, and not one alone.
    const clients = await Promise.all(many(PER_NETWORK, () => openRawClient(port)));
    onTestFinished(() => clients.forEach((client) => void client.socket.destroy()));
    // Each is told that it has its place, before another is asked for.
    for (const client of clients) client.socket.write(UNFINISHED.replace('\r\n', '\r\nExpect: 100-continue\r\n'));
    await eventually(() => expect(clients.map(({ received }) => received())).toEqual(Array(PER_NETWORK).fill(CONTINUE)));
    expect((await check()).status).toBe(429);
    expect(clients.map(({ received }) => received())).toEqual(Array(PER_NETWORK).fill(CONTINUE));
  });

  it('over HTTP/1.1 are cut off as soon', async () => {
    const { url } = await openServer(100);
    const { socket, ended, received } = await openRawClient(Number(new URL(url).port));
    socket.once('end', () => socket.end()).write(UNFINISHED);
    await ended;
    expect(received()).toBe('');
  });
});

describe('watchers', () => {
  it('of one address take no place from those of another', async () => {
    const { from } = await openServer();
    const session = from('127.0.0.1');
    const watches = [];
    for (let i = 0; i < WATCHERS_PER_NETWORK + 3; i += 1) {
      const watch = call(session, WATCH, EMPTY);
      watches.push(watch);
      await eventually(() => expect(watch.seen.bytes > 0 || watch.seen.isClosed).toBe(true));
    }
    const refused = watches.filter(({ seen }) => seen.isClosed).map(({ seen }) => seen.status);
    expect(refused).toEqual(Array(3).fill(RESOURCE_EXHAUSTED));
    const { seen } = call(from('127.0.0.2'), WATCH, EMPTY);
    await eventually(() => expect(seen.bytes).toBeGreaterThan(0));
  });

  it('that go away are no error of ours, before their message has come or after', async () => {
    const { from, lines } = await openServer();
    for (const body of [undefined, EMPTY]) {
      const session = from('127.0.0.1');
      const calls = many(10, () => call(session, WATCH, body));
      if (body) await eventually(() => expect(calls.every(({ seen }) => seen.bytes > 0)).toBe(true));
      else await eventually(() => expect(calls.every(({ stream }) => !stream.pending)).toBe(true));
      session.destroy();
    }
    const { seen } = call(from('127.0.0.1'), CHECK, EMPTY);
    await eventually(() => expect(seen.status).toBe('0'));
    expect(lines.filter(({ level }) => Number(level) >= 40)).toEqual([]);
  });
});

it.each([
  'text/plain',
  'application/json',
  'application/x-unknown',
  'application/proto',
  'application/grpc-web+proto',
  'application/grpc',
])('a body of %s is not waited for where no credential is shown, whatever the path', async (type) => {
  const { url, from } = await openServer();
  for (const path of ['/nowhere', '/latchkey.apps.v1.ApplicationService/DeleteApplication', '/healthz']) {
    const { socket, received } = await openRawClient(Number(new URL(url).port));
    onTestFinished(() => void socket.destroy());
    socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\nContent-Length: 1000000\r\n\r\n{`);
    await eventually(() => expect(received(), path).toMatch(/^HTTP\/1\.1 (200|401|404|415) /));
    const { stream } = call(from('127.0.0.1'), path, undefined, { 'content-type': type });
    stream.write('{');
    await once(stream, 'close');
  }
});
