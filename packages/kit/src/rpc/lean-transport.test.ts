import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type CallOptions, Code, ConnectError, createClient } from '@connectrpc/connect';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { findFreePort } from '@latchkey/testkit/free-port';
import { describe, expect, it, onTestFinished } from 'vitest';
import { fromConnectError } from '../errors.ts';
import { CREDENTIAL, startHttpServer, startTcpServer, startTestServer, testRoute } from '../testing/servers.ts';
import { MESSAGE_BYTES_MAX } from './route.ts';
import { createServiceTransport } from './transport.ts';

function clientOf(url: string) {
  const transport = createServiceTransport(url, CREDENTIAL);
  onTestFinished(() => transport.close());
  return { transport, client: createClient(ApplicationService, transport) };
}

const codeOf = (call: Promise<unknown>) =>
  call.then(
    () => 'answered',
    (err: unknown) => ConnectError.from(err).code,
  );

/** A server that hands each request to the next listener; the last one stays. */
async function startScripted(...listeners: Array<(req: IncomingMessage, res: ServerResponse) => void>) {
  let requests = 0;
  const url = await startHttpServer((req, res) => {
    const listener = listeners[Math.min(requests, listeners.length - 1)];
    requests += 1;
    listener?.(req, res);
  });
  return { url, requests: () => requests };
}

const hangUp = (req: IncomingMessage) => void req.socket.destroy();
const succeed = (_req: IncomingMessage, res: ServerResponse) =>
  void res.writeHead(200, { 'content-type': 'application/proto' }).end();
const answerWith = (status: number, contentType: string, body: string | Buffer) => (_req: IncomingMessage, res: ServerResponse) =>
  void res.writeHead(status, { 'content-type': contentType }).end(body);

describe('retries', () => {
  it('tries a read once more when the connection was dropped before an answer', async () => {
    const { url, requests } = await startScripted(hangUp, succeed);
    expect(await codeOf(clientOf(url).client.getApplicationSettings({}))).toBe('answered');
    expect(requests()).toBe(2);
  });

  it('gives up after the second try', async () => {
    const { url, requests } = await startScripted(hangUp);
    expect(await codeOf(clientOf(url).client.getApplicationSettings({}))).toBe(Code.Unavailable);
    expect(requests()).toBe(2);
  });

  it('does not repeat a write, not even an idempotent one', async () => {
    const { url, requests } = await startScripted(hangUp);
    const { client } = clientOf(url);
    expect(await codeOf(client.createApplication({}))).toBe(Code.Unavailable);
    expect(await codeOf(client.replaceLicenseLevels({}))).toBe(Code.Unavailable);
    expect(requests()).toBe(2);
  });

  it('does not repeat a read that was refused, even as unavailable', async () => {
    const { url, requests } = await startScripted(answerWith(503, 'application/json', '{"code":"unavailable"}'));
    expect(await codeOf(clientOf(url).client.getApplicationSettings({}))).toBe(Code.Unavailable);
    expect(requests()).toBe(1);
  });

  it('does not repeat a read whose answer began', async () => {
    const { url, requests } = await startScripted((req, res) => {
      res.writeHead(200, { 'content-type': 'application/proto', 'content-length': '10' });
      res.write('x', () => req.socket.destroy());
    });
    expect(await codeOf(clientOf(url).client.getApplicationSettings({}))).toBe(Code.Unavailable);
    expect(requests()).toBe(1);
  });

  it('fails with unavailable when nobody listens', async () => {
    const { client } = clientOf(`http://127.0.0.1:${await findFreePort()}`);
    const err = await client.getApplicationSettings({}).catch((reason: unknown) => reason);
    expect(fromConnectError(err)).toMatchObject({ reason: 'dependency_unavailable' });
    expect(await codeOf(client.createApplication({}))).toBe(Code.Unavailable);
  });

  it('keeps both tries within one deadline', async () => {
    const { url, requests } = await startScripted(hangUp, () => undefined);
    expect(await codeOf(clientOf(url).client.getApplicationSettings({}, { timeoutMs: 1_000 }))).toBe(Code.DeadlineExceeded);
    expect(requests()).toBe(2);
  });
});

describe('a server that misbehaves', () => {
  const cases: Array<[string, (req: IncomingMessage, res: ServerResponse) => void, Code]> = [
    ['a malformed answer', answerWith(200, 'application/proto', Buffer.of(0x0a, 0xff)), Code.Internal],
    ['another content type', answerWith(200, 'text/html', '<p>'), Code.Internal],
    [
      'an answer beyond the limit',
      answerWith(200, 'application/proto', Buffer.alloc(MESSAGE_BYTES_MAX + 1)),
      Code.ResourceExhausted,
    ],
    ['an endless answer', (_req, res) => flood(res), Code.ResourceExhausted],
    ['a status without a body', answerWith(503, 'text/plain', 'no'), Code.Unavailable],
    ['a missing path', answerWith(404, 'application/json', '{"statusCode":404}'), Code.Unimplemented],
    ['an error that is no JSON', answerWith(400, 'application/json', '{'), Code.Internal],
    ['an error with an unknown code', answerWith(401, 'application/json', '{"code":"tea"}'), Code.Unauthenticated],
  ];

  it.each(cases)('is told by %s', async (_name, listener, code) => {
    const { url } = await startScripted(listener);
    expect(await codeOf(clientOf(url).client.createApplication({}))).toBe(code);
  });

  it('can be silent until the deadline of the client, and no longer', async () => {
    const { port } = await startTcpServer(() => undefined);
    const { client } = clientOf(`http://127.0.0.1:${port}`);
    expect(await codeOf(client.getApplicationSettings({}, { timeoutMs: 50 }))).toBe(Code.DeadlineExceeded);
  });

  it('can stop in the middle of an answer until the deadline of the client, and no longer', async () => {
    const { url } = await startScripted(
      (_req, res) => void res.writeHead(200, { 'content-type': 'application/proto' }).write('x'),
    );
    expect(await codeOf(clientOf(url).client.getApplicationSettings({}, { timeoutMs: 50 }))).toBe(Code.DeadlineExceeded);
  });
});

function flood(res: ServerResponse): void {
  res.writeHead(200, { 'content-type': 'application/proto' });
  const write = () => {
    while (!res.destroyed && res.write(Buffer.alloc(65_536)));
    if (!res.destroyed) res.once('drain', write);
  };
  write();
}

describe('calls that are given up', () => {
  it('cost neither the calls beside them nor those after, 1,500 at once', async () => {
    const answers = Promise.withResolvers<void>();
    const { url } = await startTestServer([
      testRoute(ApplicationService, {
        getApplicationSettings: () => new Promise(() => undefined),
        async listLicenseLevels() {
          await answers.promise;
          return { levels: ['pro'] };
        },
        deleteApplication: async () => ({}),
      }),
    ]);
    const { client } = clientOf(url);
    const beside = Array.from({ length: 8 }, () => client.listLicenseLevels({}));
    const controller = new AbortController();
    const options: CallOptions = { signal: controller.signal };
    const canceled = Array.from({ length: 1_500 }, () => codeOf(client.getApplicationSettings({}, options)));
    const after = Array.from({ length: 50 }, () => client.deleteApplication({}));
    controller.abort();
    expect(new Set(await Promise.all(canceled))).toEqual(new Set([Code.Canceled]));
    answers.resolve();
    await Promise.all(after);
    for (const { levels } of await Promise.all(beside)) expect(levels).toEqual(['pro']);
    await Promise.all(Array.from({ length: 50 }, () => client.deleteApplication({})));
  });

  it('close no connection while they wait for one', async () => {
    const sockets = new Set<Socket>();
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    let waiting = 0;
    const { url } = await startScripted((req, res) => {
      sockets.add(req.socket);
      waiting += 1;
      void held.then(() => succeed(req, res));
    });
    const { client } = clientOf(url);
    const holding = Array.from({ length: 16 }, () => client.createApplication({}));
    await eventually(() => waiting === 16);
    const controller = new AbortController();
    const queued = Array.from({ length: 100 }, () => codeOf(client.createApplication({}, { signal: controller.signal })));
    controller.abort();
    await Promise.all(queued);
    release();
    await Promise.all(holding);
    await Promise.all(Array.from({ length: 16 }, () => client.createApplication({})));
    expect(sockets.size).toBe(16);
  });
});

describe('what a call sends', () => {
  it('presents the credential and the protocol, whatever headers the caller gives', async () => {
    let seen: IncomingMessage['headers'] = {};
    const { url } = await startScripted((req, res) => {
      seen = req.headers;
      succeed(req, res);
    });
    const headers = { Authorization: 'Bearer other', 'content-length': '99', 'content-type': 'text/plain', 'x-own': 'kept' };
    await clientOf(url).client.createApplication({ name: 'n' }, { headers, timeoutMs: 1234.5 });
    expect(seen).toMatchObject({
      authorization: `Bearer ${CREDENTIAL}`,
      'content-type': 'application/proto',
      'connect-protocol-version': '1',
      'content-length': '3',
      'x-own': 'kept',
    });
    expect(Number(seen['connect-timeout-ms'])).toBeLessThanOrEqual(1235);
  });

  it('is refused before it is sent where a header or a message is no valid one', async () => {
    const { url, requests } = await startScripted(succeed);
    const { client } = clientOf(url);
    expect(await codeOf(client.createApplication({}, { headers: { 'x-own': 'a\nb' } }))).toBe(Code.Internal);
    expect(await codeOf(client.listApplications({ pageSize: 1.5 }))).toBe(Code.Internal);
    expect(requests()).toBe(0);
  });
});

it('lets the calls under way end when it is closed, and fails those after', async () => {
  const { url } = await startTestServer([testRoute(ApplicationService, { deleteApplication: async () => ({}) })]);
  const { transport, client } = clientOf(url);
  const underWay = client.deleteApplication({});
  await transport.close();
  await underWay;
  expect(await codeOf(client.deleteApplication({}))).toBe(Code.Unavailable);
});
