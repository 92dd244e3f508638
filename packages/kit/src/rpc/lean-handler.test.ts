import { once } from 'node:events';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { createClient, type Interceptor } from '@connectrpc/connect';
import {
  ApplicationService,
  CreateApplicationRequestSchema,
  CreateApplicationResponseSchema,
} from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CREDENTIAL, startTestServer, testRoute } from '../testing/servers.ts';
import { MESSAGE_BYTES_MAX } from './route.ts';
import { createServiceTransport } from './transport.ts';

const METHOD = '/latchkey.apps.v1.ApplicationService/CreateApplication';
const route = testRoute(ApplicationService, { createApplication: async ({ name }) => ({ applicationId: `id of ${name}` }) });
const message = (name: string) =>
  toBinary(CreateApplicationRequestSchema, {
    $typeName: 'latchkey.apps.v1.CreateApplicationRequest',
    accountId: '',
    name,
  });

const HEAD = `POST ${METHOD} HTTP/1.1\r\nhost: x\r\ncontent-type: application/proto\r\nauthorization: Bearer ${CREDENTIAL}\r\n`;

interface Post {
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly body?: Uint8Array | ReadableStream | string;
}

async function post(url: string, { path = METHOD, headers = {}, body = message('x') }: Post = {}) {
  const all = { 'content-type': 'application/proto', authorization: `Bearer ${CREDENTIAL}`, ...headers };
  const res = await fetch(url + path, { method: 'POST', headers: all, body, duplex: 'half' } as RequestInit);
  const bytes = new Uint8Array(await res.arrayBuffer());
  const json = () => JSON.parse(new TextDecoder().decode(bytes)) as { code: string; message: string };
  return { status: res.status, contentType: res.headers.get('content-type'), bytes, json };
}

/** A body without a declared length. */
function chunked(sizeBytes: number): ReadableStream {
  let left = sizeBytes;
  return new ReadableStream({
    pull(controller) {
      if (left <= 0) return controller.close();
      controller.enqueue(new Uint8Array(Math.min(left, 65_536)));
      left -= 65_536;
    },
  });
}

describe('the wire of a unary call', () => {
  it('answers a plain POST with the message and nothing around it', async () => {
    const { url } = await startTestServer([route]);
    const { status, contentType, bytes } = await post(url);
    expect([status, contentType]).toEqual([200, 'application/proto']);
    expect(fromBinary(CreateApplicationResponseSchema, bytes).applicationId).toBe('id of x');
  });

  it('takes a body in pieces', async () => {
    const { url } = await startTestServer([route]);
    const body = new ReadableStream({
      start(controller) {
        for (const byte of message('pieces')) controller.enqueue(Uint8Array.of(byte));
        controller.close();
      },
    });
    expect(fromBinary(CreateApplicationResponseSchema, (await post(url, { body })).bytes).applicationId).toBe('id of pieces');
  });

  it('refuses a malformed message', async () => {
    const { url } = await startTestServer([route]);
    const { status, json } = await post(url, { body: Uint8Array.of(0x0a, 0xff) });
    expect([status, json()]).toEqual([400, { code: 'invalid_argument', message: 'the request is no valid message' }]);
  });

  it.each(['-1', '1.5', '12345678901', 'soon', ''])('refuses the time-out %j', async (timeout) => {
    const { url } = await startTestServer([route]);
    const { status, json } = await post(url, { headers: { 'connect-timeout-ms': timeout } });
    expect([status, json().code]).toEqual([400, 'invalid_argument']);
  });

  it('holds a time-out that is longer than allowed for the longest', async () => {
    const { url } = await startTestServer([route]);
    expect((await post(url, { headers: { 'connect-timeout-ms': '9999999999' } })).status).toBe(200);
  });

  it('ends a call at the deadline of its header though handler and body go on', async () => {
    const idle = testRoute(ApplicationService, { createApplication: () => new Promise(() => undefined) });
    const { url } = await startTestServer([idle]);
    const headers = { 'connect-timeout-ms': '20' };
    expect((await post(url, { headers })).json().code).toBe('deadline_exceeded');
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    socket.write(`${HEAD}connect-timeout-ms: 20\r\ncontent-length: 9\r\n\r\nab`);
    const [answer] = await once(socket, 'data');
    expect(String(answer)).toContain('deadline_exceeded');
  });

  it.each([
    ['declared', () => new Uint8Array(MESSAGE_BYTES_MAX + 1)],
    ['chunked', () => chunked(3 * MESSAGE_BYTES_MAX)],
  ])('refuses a %s request beyond the limit, and goes on with the connection', async (_name, body) => {
    const { url } = await startTestServer([route]);
    for (let i = 0; i < 3; i += 1) {
      const { status, json } = await post(url, { body: body() });
      expect([status, json().code]).toEqual([429, 'resource_exhausted']);
    }
    expect((await post(url)).status).toBe(200);
  });

  it('answers 404 for a method that is not there', async () => {
    const { url } = await startTestServer([route]);
    expect((await post(url, { path: '/latchkey.apps.v1.ApplicationService/Nothing' })).status).toBe(404);
  });

  it('answers 415 for a content type that is none of the protocol', async () => {
    const { url } = await startTestServer([route]);
    expect((await post(url, { headers: { 'content-type': 'text/plain' } })).status).toBe(415);
  });

  it('refuses compression', async () => {
    const { url } = await startTestServer([route]);
    const { status, json } = await post(url, { headers: { 'content-encoding': 'gzip' }, body: gzipSync(message('x')) });
    expect([status, json().code]).toEqual([501, 'unimplemented']);
  });

  it('takes a content type with parameters and a declared identity encoding', async () => {
    const { url } = await startTestServer([route]);
    expect((await post(url, { headers: { 'content-encoding': 'identity' } })).status).toBe(200);
    expect((await post(url, { headers: { 'content-type': 'application/proto; charset=utf-8' } })).status).not.toBe(500);
  });

  it('tells the handler of a caller that hung up', async () => {
    const started = Promise.withResolvers<void>();
    const gone = Promise.withResolvers<unknown>();
    const waiting = testRoute(ApplicationService, {
      async createApplication(_req, { signal }) {
        signal.addEventListener('abort', () => gone.resolve(signal.reason), { once: true });
        started.resolve();
        await gone.promise;
        throw new Error('too late');
      },
    });
    const { url, lines } = await startTestServer([waiting]);
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    socket.write(`${HEAD}content-length: 0\r\n\r\n`);
    await started.promise;
    socket.destroy();
    expect(await gone.promise).toMatchObject({ rawMessage: 'the caller is gone' });
    await eventually(() => expect(lines).toMatchObject([{ level: 30, msg: 'rpc refused', reason: 'canceled' }]));
  });

  it('never runs a handler for a request that was cut off', async () => {
    let calls = 0;
    const counting = testRoute(ApplicationService, {
      async createApplication() {
        calls += 1;
        return {};
      },
    });
    const { url, stop } = await startTestServer([counting]);
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    await new Promise((resolve) => socket.write(`${HEAD}content-length: 9\r\n\r\nab`, resolve));
    socket.destroy();
    await once(socket, 'close');
    await stop();
    expect(calls).toBe(0);
  });

  it('masks and logs what an interceptor or the encoding of an answer fails with', async () => {
    const wrong = testRoute(ApplicationService, {
      getApplicationSettings: async () => ({ settings: { status: 1.5 as never } }),
      deleteApplication: async () => ({}),
    });
    const failing: Interceptor = (next) => (req) => {
      if (req.method.name === 'DeleteApplication') throw new Error('broken interceptor');
      return next(req);
    };
    const { url, lines } = await startTestServer([wrong], { interceptors: [failing] });
    const failed = () => lines.filter(({ msg }) => msg === 'rpc failed');
    const headers = { 'x-request-id': 'r-9' };
    const path = '/latchkey.apps.v1.ApplicationService/DeleteApplication';
    const encoding = '/latchkey.apps.v1.ApplicationService/GetApplicationSettings';
    expect((await post(url, { headers, path: encoding })).json()).toEqual({ code: 'internal', message: 'internal error' });
    expect((await post(url, { headers, path })).json()).toEqual({ code: 'internal', message: 'internal error' });
    const json = { ...headers, 'content-type': 'application/json' };
    expect((await post(url, { headers: json, path, body: '{}' })).json()).toEqual({
      code: 'internal',
      message: 'internal error',
    });
    expect(failed()).toMatchObject([
      { requestId: 'r-9', rpc: encoding.slice(1) },
      { requestId: 'r-9', err: { message: 'broken interceptor' } },
      { requestId: 'r-9', err: { message: 'broken interceptor' } },
    ]);
  });

  it('does not let a handler change the headers of the protocol', async () => {
    const meddling = testRoute(ApplicationService, {
      async createApplication(_req, { responseHeader }) {
        responseHeader.set('content-length', '1');
        responseHeader.set('content-type', 'text/html');
        return { applicationId: 'a' };
      },
    });
    const { url } = await startTestServer([meddling]);
    const transport = createServiceTransport(url, CREDENTIAL);
    onTestFinished(() => transport.close());
    expect((await createClient(ApplicationService, transport).createApplication({})).applicationId).toBe('a');
  });
});
