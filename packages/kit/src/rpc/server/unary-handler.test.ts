import { gzipSync } from 'node:zlib';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  ApplicationService,
  CreateApplicationRequestSchema,
  CreateApplicationResponseSchema,
} from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient } from '@latchkey/testkit/network/raw-client';
import { expect, it, vi } from 'vitest';
import { AUTHORIZATION, startTestServer, testRoute } from '../../testing/servers.ts';
import { MESSAGE_BYTES_MAX } from '../route.ts';

const PATH = '/latchkey.apps.v1.ApplicationService/CreateApplication';
const route = testRoute(ApplicationService, {
  createApplication: async ({ name }) => ({ applicationId: `id of ${name}` }),
});
const MESSAGE = toBinary(CreateApplicationRequestSchema, create(CreateApplicationRequestSchema, { name: 'x' }));

interface Post {
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly body?: Uint8Array | ReadableStream;
}

async function post(url: string, { path = PATH, headers = {}, body = MESSAGE }: Post = {}) {
  const all = { 'content-type': 'application/proto', authorization: AUTHORIZATION, ...headers };
  const res = await fetch(url + path, { method: 'POST', headers: all, body, duplex: 'half' } as RequestInit);
  const bytes = new Uint8Array(await res.arrayBuffer());
  const contentType = res.headers.get('content-type');
  const { code } = contentType === 'application/json' ? JSON.parse(new TextDecoder().decode(bytes)) : {};
  return { status: res.status, contentType, bytes, code };
}

/** A body in pieces, without a declared length. */
const inPieces = (pieces: Iterable<Uint8Array>) => ReadableStream.from(pieces) as unknown as ReadableStream;

it('answers a message with a message and the headers of the protocol', async () => {
  const { url } = await startTestServer([route]);
  for (const body of [MESSAGE, inPieces([...MESSAGE].map((byte) => Uint8Array.of(byte)))]) {
    const { status, contentType, bytes } = await post(url, { body, headers: { 'connect-timeout-ms': '9999999999' } });
    expect([status, contentType]).toEqual([200, 'application/proto']);
    expect(fromBinary(CreateApplicationResponseSchema, bytes).applicationId).toBe('id of x');
  }
});

it.each<[string, Post, number, string | undefined]>([
  ['a malformed message', { body: Uint8Array.of(0x0a, 0xff) }, 400, 'invalid_argument'],
  ['a time-out other than a number', { headers: { 'connect-timeout-ms': 'soon' } }, 400, 'invalid_argument'],
  ['a time-out of eleven digits', { headers: { 'connect-timeout-ms': '12345678901' } }, 400, 'invalid_argument'],
  ['compression', { headers: { 'content-encoding': 'gzip' }, body: gzipSync(MESSAGE) }, 501, 'unimplemented'],
  ['another content type', { headers: { 'content-type': 'text/plain' } }, 415, undefined],
])('rejects %s', async (_what, given, status, code) => {
  const { url } = await startTestServer([route]);
  expect(await post(url, given)).toMatchObject({ status, code });
});

it('rejects a malformed message in a query, and of a health check', async () => {
  const { url } = await startTestServer([testRoute(ApplicationService, { getApplicationSettings: async () => ({}) })]);
  const get = (message: string) => {
    const path = PATH.replace('CreateApplication', 'GetApplicationSettings');
    const query = `connect=v1&encoding=proto&${message}`;
    return fetch(`${url}${path}?${query}`, { headers: { authorization: AUTHORIZATION } });
  };
  const type = { 'content-type': 'application/proto' };
  const check = () => fetch(`${url}/grpc.health.v1.Health/Check`, { method: 'POST', headers: type, body: 'x' });
  for (const response of [await get('message=x'), await get('base64=1&message=!'), await check()]) {
    expect([response.status, await response.json()]).toEqual([400, expect.objectContaining({ code: 'invalid_argument' })]);
  }
  expect((await get('message=')).status).toBe(200);
});

it('rejects a request beyond the limit, declared or chunked, and accepts the next', async () => {
  const { url } = await startTestServer([route]);
  const chunks = Array.from({ length: 48 }, () => new Uint8Array(65_536));
  for (const body of [new Uint8Array(MESSAGE_BYTES_MAX + 1), inPieces(chunks)]) {
    expect(await post(url, { body })).toMatchObject({ code: 'resource_exhausted' });
    expect((await post(url)).status).toBe(200);
  }
});

it('ends at its deadline though its body has not come, and runs no handler for a cut-off request', async () => {
  const createApplication = vi.fn(async () => ({}));
  const { port, stop } = await startTestServer([testRoute(ApplicationService, { createApplication })]);
  const head = `POST ${PATH} HTTP/1.1\r\nhost: x\r\ncontent-type: application/proto\r\nauthorization: ${AUTHORIZATION}\r\n`;
  const [late, cut] = [await openRawClient(port), await openRawClient(port)];
  late.socket.write(`${head}connect-timeout-ms: 20\r\ncontent-length: 9\r\n\r\nab`);
  cut.socket.write(`${head}content-length: 9\r\n\r\nab`);
  await eventually(() => expect(late.received()).toContain('deadline_exceeded'));
  for (const { socket } of [late, cut]) socket.destroy();
  await Promise.all([late.ended, cut.ended]);
  await stop();
  expect(createApplication).not.toHaveBeenCalled();
});

it('masks and logs a response that cannot be encoded', async () => {
  const settings = { status: 1.5 as never };
  const wrong = testRoute(ApplicationService, { getApplicationSettings: async () => ({ settings }) });
  const { url, lines } = await startTestServer([wrong]);
  const call = { path: PATH.replace('CreateApplication', 'GetApplicationSettings'), headers: { 'x-request-id': 'r-9' } };
  expect(await post(url, call)).toMatchObject({ status: 500, code: 'internal' });
  const failed = lines.filter(({ msg }) => msg === 'rpc failed');
  expect(failed).toMatchObject([{ level: 50, requestId: 'r-9', rpc: call.path.slice(1) }]);
});
