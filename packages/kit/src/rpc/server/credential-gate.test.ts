import { constants } from 'node:http2';
import { createClient } from '@connectrpc/connect';
import { Health, HealthCheckResponse_ServingStatus as Status } from '@latchkey/proto/health/v1/health_pb';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient } from '@latchkey/testkit/network/raw-client';
import { describe, expect, it } from 'vitest';
import { DELETE_APPLICATION, EMPTY, openSession, openTcp, startCall } from '../../testing/http2.ts';
import { openTransport, startTestServer, testRoute } from '../../testing/servers.ts';

const route = testRoute(ApplicationService, { deleteApplication: async () => ({}) });
const CHECK = '/grpc.health.v1.Health/Check';
const WATCH = '/grpc.health.v1.Health/Watch';
const REFLECTION = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';
const [RESOURCE_EXHAUSTED, UNIMPLEMENTED, UNAUTHENTICATED] = ['8', '12', '16'];
const PER_NETWORK = 20;
const JSON_TYPE = { 'content-type': 'application/json' };

async function openServer(openCallMs = 60_000) {
  const server = await startTestServer([route], { limits: { openCallMs } });
  const call = (session: ReturnType<typeof openSession>, path: string, body?: Buffer, headers = {}) =>
    startCall(session, path, body, { authorization: undefined, ...headers });
  const from = (address: string) => openSession(server.grpcUrl, () => openTcp(server.grpcUrl, address));
  return { ...server, call, from };
}

const post = (url: string, body = '{}', headers = {}) =>
  fetch(url, { method: 'POST', body, headers: { ...JSON_TYPE, ...headers } });

describe('without a credential', () => {
  it.each([
    [CHECK, '0', 200],
    ['/grpc.health.v1.Health/List', UNAUTHENTICATED, 401],
    [WATCH, UNAUTHENTICATED, 401],
    [REFLECTION, UNAUTHENTICATED, 401],
    [DELETE_APPLICATION, UNAUTHENTICATED, 401],
    [`${DELETE_APPLICATION}?x`, UNAUTHENTICATED, 401],
    [DELETE_APPLICATION.replace('D', '%44'), UNIMPLEMENTED, 404],
    ['/nowhere', UNIMPLEMENTED, 404],
    ['/%', UNIMPLEMENTED, 404],
  ])('%s is answered with status %s over gRPC and %s over HTTP', async (path, grpc, http) => {
    const { call, from, url, port } = await openServer();
    const { seen } = call(from('127.0.0.1'), path, EMPTY);
    await eventually(() => expect(seen.status).toBe(grpc));
    expect((await post(url + path)).status).toBe(http);
    const { socket, received } = await openRawClient(port);
    // A router of HTTP takes this form of a path too.
    socket.write(`POST http://x${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/proto\r\nContent-Length: 0\r\n\r\n`);
    await eventually(() => expect(received()).toMatch(/^HTTP\/1\.1 404 /));
  });

  it.each(['application/json', 'application/proto', 'application/grpc'])('a body of %s is not awaited', async (type) => {
    const { call, from, port } = await openServer();
    for (const path of ['/nowhere', DELETE_APPLICATION, '/healthz']) {
      const { socket, received } = await openRawClient(port);
      socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\nContent-Length: 1000000\r\n\r\n{`);
      await eventually(() => expect(received(), path).toMatch(/^HTTP\/1\.1 (200|401|404) /));
      const { stream, seen } = call(from('127.0.0.1'), path, undefined, { 'content-type': type });
      stream.write('{');
      await eventually(() => expect(seen.isClosed).toBe(true));
    }
  });
});

describe('health checks without a credential', () => {
  it('are rejected beyond the share of an address, but not those of others, nor with a credential', async () => {
    const { call, from, url } = await openServer();
    const session = from('127.0.0.1');
    const calls = Array.from({ length: PER_NETWORK + 5 }, () => call(session, CHECK));
    const rejected = () => calls.filter(({ seen }) => seen.isClosed).map(({ seen }) => seen.status);
    await eventually(() => expect(rejected()).toEqual(Array(5).fill(RESOURCE_EXHAUSTED)));
    expect((await post(url + CHECK)).status).toBe(429);
    const other = call(from('127.0.0.2'), CHECK, EMPTY);
    await eventually(() => expect(other.seen.status).toBe('0'));
    expect((await createClient(Health, openTransport(url)).check({})).status).toBe(Status.SERVING);
    session.destroy();
    await eventually(async () => expect((await post(url + CHECK)).status).toBe(200));
  });

  it('are cut off when they take too long, over either protocol', async () => {
    const { call, from, port, lines } = await openServer(100);
    const { stream, seen } = call(from('127.0.0.1'), CHECK);
    stream.write(EMPTY.subarray(1));
    await eventually(() => expect(seen.rstCode).toBe(constants.NGHTTP2_CANCEL));
    const { socket, ended, received } = await openRawClient(port);
    const head = `POST ${CHECK} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`;
    socket.once('end', () => socket.end()).write(head);
    await ended;
    expect([received(), lines.filter(({ level }) => Number(level) >= 40)]).toEqual(['', []]);
  });

  it('have small messages', async () => {
    const { url } = await openServer();
    expect((await post(url + CHECK, JSON.stringify({ service: 'x'.repeat(5_000) }))).status).toBe(429);
  });
});
