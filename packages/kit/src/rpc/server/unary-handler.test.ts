import { once } from 'node:events';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  ApplicationService,
  CreateApplicationRequestSchema,
  CreateApplicationResponseSchema,
} from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { describe, expect, it, onTestFinished } from 'vitest';
import { AUTHORIZATION, startTestServer, testRoute } from '../../testing/servers.ts';
import { MESSAGE_BYTES_MAX } from '../route.ts';

const PATH = '/latchkey.apps.v1.ApplicationService/CreateApplication';
const route = testRoute(ApplicationService, {
  async createApplication({ name }, { responseHeader }) {
    responseHeader.set('content-length', '1');
    responseHeader.set('content-type', 'text/html');
    return { applicationId: `id of ${name}` };
  },
});
const message = (name: string) =>
  toBinary(CreateApplicationRequestSchema, { $typeName: 'latchkey.apps.v1.CreateApplicationRequest', accountId: '', name });

const HEAD = `POST ${PATH} HTTP/1.1\r\nhost: x\r\ncontent-type: application/proto\r\nauthorization: ${AUTHORIZATION}\r\n`;

interface Post {
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly body?: Uint8Array | ReadableStream;
}

async function post(url: string, { path = PATH, headers = {}, body = message('x') }: Post = {}) {
  const all = { 'content-type': 'application/proto', authorization: AUTHORIZATION, ...headers };
  const res = await fetch(url + path, { method: 'POST', headers: all, body, duplex: 'half' } as RequestInit);
  const bytes = new Uint8Array(await res.arrayBuffer());
  const isJson = res.headers.get('content-type') === 'application/json';
  const error = isJson ? (JSON.parse(new TextDecoder().decode(bytes)) as { code: string }) : undefined;
  return { status: res.status, contentType: res.headers.get('content-type'), bytes, code: error?.code };
}

function openSocket(url: string, text: string) {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.write(text);
  return socket;
}

/** A body in pieces, without a declared length. */
function inPieces(pieces: Iterable<Uint8Array>): ReadableStream {
  return ReadableStream.from(pieces) as unknown as ReadableStream;
}

describe('a unary call on the wire', () => {
  it('is a POST of the message, whose response is the message with the headers of the protocol', async () => {
    const { url } = await startTestServer([route]);
    for (const body of [message('x'), inPieces([...message('x')].map((byte) => Uint8Array.of(byte)))]) {
      const { status, contentType, bytes } = await post(url, { body, headers: { 'connect-timeout-ms': '9999999999' } });
      expect([status, contentType]).toEqual([200, 'application/proto']);
      expect(fromBinary(CreateApplicationResponseSchema, bytes).applicationId).toBe('id of x');
    }
  });

  it.each<[string, Post, number, string | undefined]>([
    ['a malformed message', { body: Uint8Array.of(0x0a, 0xff) }, 400, 'invalid_argument'],
    ['a time-out that is no number', { headers: { 'connect-timeout-ms': 'soon' } }, 400, 'invalid_argument'],
    ['a time-out of eleven digits', { headers: { 'connect-timeout-ms': '12345678901' } }, 400, 'invalid_argument'],
    ['compression', { headers: { 'content-encoding': 'gzip' }, body: gzipSync(message('x')) }, 501, 'unimplemented'],
    ['another content type', { headers: { 'content-type': 'text/plain' } }, 415, undefined],
  ])('rejects %s', async (_what, given, status, code) => {
    const { url } = await startTestServer([route]);
    expect(await post(url, given)).toMatchObject({ status, code });
  });

  it.each([
    ['declared', () => new Uint8Array(MESSAGE_BYTES_MAX + 1)],
    ['chunked', () => inPieces(Array.from({ length: 48 }, () => new Uint8Array(65_536)))],
  ])('rejects a %s request beyond the limit, and accepts the next', async (_name, body) => {
    const { url } = await startTestServer([route]);
    for (let i = 0; i < 3; i += 1) expect(await post(url, { body: body() })).toMatchObject({ code: 'resource_exhausted' });
    expect((await post(url)).status).toBe(200);
  });

  it('ends at its deadline though its body has not come', async () => {
    const { url } = await startTestServer([route]);
    const [response] = await once(openSocket(url, `${HEAD}connect-timeout-ms: 20\r\ncontent-length: 9\r\n\r\nab`), 'data');
    expect(String(response)).toContain('deadline_exceeded');
  });

  it('aborts the handler of a caller that hangs up, and runs none for a request that was cut off', async () => {
    const started = Promise.withResolvers<void>();
    const gone = Promise.withResolvers<unknown>();
    let calls = 0;
    const waiting = testRoute(ApplicationService, {
      async createApplication(_req, { signal }) {
        calls += 1;
        signal.addEventListener('abort', () => gone.resolve(signal.reason), { once: true });
        started.resolve();
        await gone.promise;
        throw new Error('too late');
      },
    });
    const { url, lines, stop } = await startTestServer([waiting]);
    const cut = openSocket(url, `${HEAD}content-length: 9\r\n\r\nab`);
    const socket = openSocket(url, `${HEAD}content-length: 0\r\n\r\n`);
    await started.promise;
    for (const one of [cut, socket]) one.destroy();
    expect(await gone.promise).toMatchObject({ rawMessage: 'the caller is gone' });
    await eventually(() => expect(lines).toMatchObject([{ level: 30, msg: 'rpc refused', reason: 'canceled' }]));
    await stop();
    expect(calls).toBe(1);
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
});
