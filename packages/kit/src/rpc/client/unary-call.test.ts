import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Code, createClient } from '@connectrpc/connect';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { eventually } from '@latchkey/testkit/eventually';
import type { Dispatcher, Pool } from 'undici';
import { describe, expect, it } from 'vitest';
import {
  AUTHORIZATION,
  codeOf,
  openTransport,
  startHttpServer,
  startTcpServer,
  startTestServer,
  testRoute,
} from '../../testing/servers.ts';
import { UnaryCall } from './unary-call.ts';

const UNREAD = 'HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n';
const SUCCESS = 'HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nContent-Length: 0\r\n\r\n';
const TIMEOUT = '{"code":"deadline_exceeded"}';
const REJECTED = `HTTP/1.1 408 Request Timeout\r\nContent-Type: application/json\r\nContent-Length: ${TIMEOUT.length}\r\n\r\n${TIMEOUT}`;

const clientOf = (url: string) => createClient(ApplicationService, openTransport(url));

type Listener = (req: IncomingMessage, res: ServerResponse) => void;

const succeed: Listener = (_req, res) => void res.writeHead(200, { 'content-type': 'application/proto' }).end();
const answerWith =
  (status: number, contentType: string, body: string | Buffer): Listener =>
  (_req, res) =>
    void res.writeHead(status, { 'content-type': contentType }).end(body);

/** Answers the first request of each connection in turn; the last response stays. */
async function startAnswering(...responses: string[]) {
  let requests = 0;
  const { port } = await startTcpServer((socket) => {
    socket.once('data', () => {
      socket.end(responses[Math.min(requests, responses.length - 1)] ?? '');
      requests += 1;
    });
  });
  return { client: clientOf(`http://127.0.0.1:${port}`), requests: () => requests };
}

describe('a call is sent again', () => {
  it.each([
    ['while services say that they have not read it', [UNREAD, UNREAD, SUCCESS], 'answered', 3],
    ['three times at most', [UNREAD], Code.Unavailable, 4],
    ['not when a handler answered, so that the outcome is unknown', [REJECTED, SUCCESS], Code.Unknown, 1],
    ['not when the connection was cut after it was sent, so that the outcome is unknown', ['', SUCCESS], Code.Unknown, 1],
  ])('%s', async (_when, responses, code, sent) => {
    const { client, requests } = await startAnswering(...responses);
    expect([await codeOf(client.createApplication({})), requests()]).toEqual([code, sent]);
  });

  it('not for a read whose connection was cut, which is unavailable', async () => {
    const { client, requests } = await startAnswering('', SUCCESS);
    expect([await codeOf(client.getApplicationSettings({})), requests()]).toEqual([Code.Unavailable, 1]);
  });

  it('when it found no connection', async () => {
    let sent = 0;
    const dispatch = (_options: unknown, handler: Dispatcher.DispatchHandler) => {
      sent += 1;
      const controller = {} as Dispatcher.DispatchController;
      if (sent === 1) return handler.onResponseError?.(controller, new Error('ECONNREFUSED'));
      handler.onRequestStart?.(controller, {});
      handler.onResponseError?.(controller, new Error('ECONNRESET'));
    };
    const { createApplication } = ApplicationService.method;
    const call = new UnaryCall({ dispatch } as unknown as Pool, AUTHORIZATION, 1_000);
    expect(await codeOf(call.send(createApplication, new Uint8Array(), undefined, 'application/proto'))).toBe(Code.Unavailable);
    expect(sent).toBe(2);
  });
});

describe('a server that misbehaves', () => {
  const flood: Listener = (_req, res) => {
    res.writeHead(200, { 'content-type': 'application/proto' });
    const write = () => {
      while (!res.destroyed && res.write(Buffer.alloc(65_536)));
      if (!res.destroyed) res.once('drain', write);
    };
    write();
  };

  it.each<[string, Listener, Code]>([
    ['a malformed response', answerWith(200, 'application/proto', Buffer.of(0x0a, 0xff)), Code.Internal],
    ['another content type', answerWith(200, 'text/html', '<p>'), Code.Unknown],
    ['an endless response', flood, Code.ResourceExhausted],
    ['an error other than JSON', answerWith(503, 'application/json', 'oops'), Code.Unavailable],
    ['an error of a proxy', answerWith(502, 'text/html', '<p>'), Code.Unavailable],
    [
      'a response that never ends',
      (_req, res) => void res.writeHead(200, { 'content-type': 'application/proto' }).write('x'),
      Code.DeadlineExceeded,
    ],
  ])('fails the call: %s', async (_what, listener, code) => {
    const client = clientOf(await startHttpServer(listener));
    expect(await codeOf(client.getApplicationSettings({}, { timeoutMs: 300 }))).toBe(code);
  });
});

describe('canceled calls', () => {
  it('cost neither concurrent calls nor later ones', async () => {
    const answers = Promise.withResolvers<void>();
    const { url } = await startTestServer([
      testRoute(ApplicationService, {
        getApplicationSettings: () => new Promise(() => undefined),
        listLicenseLevels: () => answers.promise.then(() => ({})),
        deleteApplication: async () => ({}),
      }),
    ]);
    const client = clientOf(url);
    const start = <T>(count: number, call: () => Promise<T>) => Array.from({ length: count }, call);
    const controller = new AbortController();
    const concurrent = start(8, () => client.listLicenseLevels({}));
    const canceled = start(200, () => codeOf(client.getApplicationSettings({}, { signal: controller.signal })));
    const after = start(50, () => client.deleteApplication({}));
    controller.abort();
    expect(new Set(await Promise.all(canceled))).toEqual(new Set([Code.Canceled]));
    answers.resolve();
    await Promise.all([...after, ...concurrent]);
    await Promise.all(start(50, () => client.deleteApplication({})));
  });

  it('that may take long leave connections for others', async () => {
    const url = await startHttpServer((req, res) => {
      if (Number(req.headers['connect-timeout-ms']) < 10_000) succeed(req, res);
    });
    const client = clientOf(url);
    const end = new AbortController();
    const long = Array.from({ length: 40 }, () => client.getApplicationSettings({}, { timeoutMs: 30_000, signal: end.signal }));
    const ended = Promise.allSettled(long);
    await client.getApplicationSettings({}, { timeoutMs: 4_000 });
    end.abort();
    await ended;
  });

  it('close no connection while they wait for one', async () => {
    const sockets = new Set<Socket>();
    const held = Promise.withResolvers<void>();
    const url = await startHttpServer((req, res) => {
      sockets.add(req.socket);
      void held.promise.then(() => succeed(req, res));
    });
    const client = clientOf(url);
    const holding = Array.from({ length: 64 }, () => client.createApplication({}));
    await eventually(() => sockets.size === 64);
    const controller = new AbortController();
    const queued = Array.from({ length: 100 }, () => codeOf(client.createApplication({}, { signal: controller.signal })));
    controller.abort();
    await Promise.all(queued);
    held.resolve();
    await Promise.all(holding);
    await Promise.all(Array.from({ length: 64 }, () => client.createApplication({})));
    expect(sockets.size).toBe(64);
  });
});

describe('the request of a call', () => {
  it('has the credential and the headers of the protocol and of the caller', async () => {
    let seen: IncomingMessage['headers'] = {};
    const url = await startHttpServer((req, res) => {
      seen = req.headers;
      succeed(req, res);
    });
    await clientOf(url).createApplication({ name: 'n' }, { headers: { 'x-own': 'kept' }, timeoutMs: 1234.5 });
    expect(seen).toMatchObject({
      authorization: AUTHORIZATION,
      'content-type': 'application/proto',
      'connect-protocol-version': '1',
      'content-length': '3',
      'x-own': 'kept',
    });
    expect(Number(seen['connect-timeout-ms'])).toBeLessThanOrEqual(1235);
  });

  it('is not sent with an invalid header or message', async () => {
    let requests = 0;
    const client = clientOf(await startHttpServer(() => (requests += 1)));
    expect(await codeOf(client.createApplication({}, { headers: { 'x-own': 'a\nb' } }))).toBe(Code.Internal);
    expect(await codeOf(client.listApplications({ pageSize: 1.5 }))).toBe(Code.Internal);
    expect(requests).toBe(0);
  });
});

it('lets the calls under way end when the transport is closed, and fails later ones', async () => {
  const { url } = await startTestServer([testRoute(ApplicationService, { deleteApplication: async () => ({}) })]);
  const transport = openTransport(url);
  const client = createClient(ApplicationService, transport);
  const underWay = client.deleteApplication({});
  await transport.close();
  await underWay;
  expect(await codeOf(client.deleteApplication({}))).toBe(Code.Unavailable);
});
