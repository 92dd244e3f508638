import { Code, ConnectError } from '@connectrpc/connect';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { beforeEach, describe, expect, it } from 'vitest';
import { type FakeApplication, FakeApps } from '../testing/fake-apps.ts';
import { clientFrame, OPCODE, RawSocket, upgradeRequest } from '../testing/raw-socket.ts';
import { startNode, type TestNode } from '../testing/test-node.ts';

let apps: FakeApps;
let application: FakeApplication;
let key: string;
let node: TestNode;
beforeEach(async () => {
  apps = new FakeApps();
  application = apps.create();
  key = application.socketKey;
  node = await startNode(apps, (await testRedis()).url);
});

const open = (...[given, ...others]: Parameters<typeof upgradeRequest>) =>
  RawSocket.open(node.port, upgradeRequest(given, ...others));

describe('an upgrade with a valid key', () => {
  it('is answered with 101, the sub-protocol and the id of the request', async () => {
    const own = await (await open(key, { 'X-Request-Id': 'my-id.1' })).answer();
    expect(own).toMatchObject({ status: 101, headers: { 'x-request-id': 'my-id.1' } });
    expect(own.headers).not.toHaveProperty('sec-websocket-protocol');
    const protocols = { 'Sec-WebSocket-Protocol': `text, bearer.${key}, cloudevents.json`, Authorization: undefined };
    const browser = await (await open(undefined, protocols)).answer();
    expect(browser).toMatchObject({ status: 101, headers: { 'sec-websocket-protocol': 'cloudevents.json' } });
    await eventually(() =>
      expect(node.lines).toContainEqual(
        expect.objectContaining({ msg: 'socket opened', requestId: browser.headers['x-request-id'] }),
      ),
    );
  });

  it.each<[string, Record<string, string>]>([
    ['a foreign origin', { Origin: 'https://evil.example' }],
    ['no origin worth the name', { Origin: 'null' }],
    ['a cookie', { Cookie: 'session=x; lk_sock=y' }],
    ['compression, which is not taken up', { 'Sec-WebSocket-Extensions': 'permessage-deflate; client_max_window_bits' }],
    ['extensions that are none', { 'Sec-WebSocket-Extensions': ';;;=' }],
    ['an id of a request that is none', { 'X-Request-Id': 'a b' }],
  ])('does not mind %s', async (_, headers) => {
    const answer = await (await open(key, headers)).answer();
    expect(answer.status).toBe(101);
    expect(answer.headers).not.toHaveProperty('sec-websocket-extensions');
    expect(answer.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
  });

  it.each<[string, string[], string]>([
    ['text', ['abc'], ''],
    ['a negative number', ['-1'], ''],
    ['a float', ['1.0'], ''],
    ['a number with an exponent', ['1e0'], ''],
    ['a hexadecimal number', ['0x1'], ''],
    ['leading zeros', ['01'], ''],
    ['a number that is to come', ['3'], ''],
    ['a number beyond all', ['9'.repeat(400)], ''],
    ['a number that can not be held exactly', ['9007199254740993'], ''],
    ['nothing', [''], ''],
    ['two headers', ['1', '1'], ''],
    ['text in the query', [], '?lastEventId=abc'],
    ['twice in the query', [], '?lastEventId=1&lastEventId=1'],
    ['a broken escape in the query', [], '?lastEventId=%'],
    ['NUL in the query', [], '?lastEventId=1%00'],
    ['the name of a prototype', [], '?__proto__=1&constructor=1'],
    ['text in the header beside a number in the query', ['abc'], '?lastEventId=1'],
  ])('begins at the present with a made-up Last-Event-ID: %s', async (_, ids, query) => {
    apps.logVersion(application);
    apps.logVersion(application);
    const headers = { 'Last-Event-ID': ids };
    const socket = await open(key, headers, `GET /api/v1/realtime${query} HTTP/1.1`);
    expect(await socket.ready()).toMatchObject({ data: { lastSequence: '2', resumed: false } });
    expect(apps.calls.list).toBe(0);
  });

  it('takes in frames that come with the request', async () => {
    const early = clientFrame(OPCODE.ping, 'early');
    const socket = await RawSocket.open(node.port, upgradeRequest(key), early);
    await eventually(() => expect(socket.frames().map(({ payload }) => String(payload))).toContain('early'));
  });

  it('takes another request behind it for no frame', async () => {
    const socket = await RawSocket.open(node.port, upgradeRequest(key), upgradeRequest(key));
    expect(await socket.closeCode()).toBe(1002);
    expect(socket.client.received().match(/HTTP\/1\.1/g)).toHaveLength(1);
  });
});

describe('what a node says of upgrades', () => {
  it('holds no key, in logs and answers', async () => {
    const unknown = `lk_sock_${'x'.repeat(32)}`;
    const protocols = (text: string) => ({
      Authorization: undefined,
      'Sec-WebSocket-Protocol': `cloudevents.json, bearer.${text}`,
    });
    const twice = { Authorization: [`Bearer ${key}`, `Bearer ${unknown}`] };
    const requests = [key, unknown].flatMap((text) => [
      upgradeRequest(text),
      upgradeRequest(undefined, protocols(text)),
      upgradeRequest(text, { 'Sec-WebSocket-Key': 'x' }),
      upgradeRequest(text, twice),
      upgradeRequest(undefined, { Authorization: undefined }, `GET /api/v1/realtime?key=${text} HTTP/1.1`),
      `${upgradeRequest(text, { Upgrade: undefined })}${text}\r\n\r\n`,
      `GET /${text} HTTP/1.1\r\nHost: a\r\n${text}\r\n\r\n`,
    ]);
    const sockets = await Promise.all(requests.map((request) => RawSocket.open(node.port, request)));
    for (const socket of sockets) await socket.answer();
    apps.failWith(new ConnectError('out', Code.Internal));
    await (await open(key)).answer();
    const said = JSON.stringify(node.lines) + sockets.map(({ client }) => client.received()).join();
    for (const text of [key, unknown]) expect(said).not.toContain(text.slice('lk_sock_'.length));
    expect(node.lines.filter(({ msg }) => msg === 'upgrade rejected').length).toBeGreaterThan(5);
  });
});

describe('a node whose apps service can not be asked', () => {
  it.each([
    ['is away', new ConnectError('no', Code.Unavailable)],
    ['is too slow', new ConnectError('late', Code.DeadlineExceeded)],
    ['fails', new ConnectError('oops', Code.Internal)],
    ['fails in an unknown way', new TypeError('oops')],
    ['is too busy', new ConnectError('busy', Code.ResourceExhausted)],
  ])('refuses with 503 and when to come again: it %s', async (_, err) => {
    apps.failWith(err);
    const answer = await (await open(key)).answer();
    expect(answer).toMatchObject({
      status: 503,
      headers: { 'retry-after': '1' },
      body: { success: false, code: 'INTERNAL_ERROR', message: expect.stringContaining(String(answer.headers['x-request-id'])) },
    });
  });

  it('refuses within 5 s where apps never answers, also those that wait for others at every step', async () => {
    const never = new Promise(() => undefined);
    const { promise: gate, resolve: letLookUpThrough } = Promise.withResolvers<void>();
    apps.logVersion(application);
    apps.logVersion(application);
    const startedAt = performance.now();
    apps.waitFor(never);
    const sockets = [await open(key)];
    await eventually(() => expect(apps.calls.lookUp).toBe(1));
    apps.waitFor(gate);
    for (let i = 0; i < 2; i += 1) sockets.push(await open(key, { 'Last-Event-ID': '0' }));
    await eventually(() => expect(apps.calls.lookUp).toBe(2));
    apps.waitFor(never);
    letLookUpThrough();
    for (const socket of sockets) expect((await socket.answer()).status).toBe(503);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });

  it('refuses within 5 s where the log can not be read', async () => {
    apps.logVersion(application);
    apps.logVersion(application);
    const { promise: gate, resolve: letLookUpThrough } = Promise.withResolvers<void>();
    apps.waitFor(gate);
    const startedAt = performance.now();
    const socket = await open(key, { 'Last-Event-ID': '0' });
    await eventually(() => expect(apps.calls.lookUp).toBe(1));
    apps.waitFor(new Promise(() => undefined));
    letLookUpThrough();
    expect((await socket.answer()).status).toBe(503);
    expect(apps.calls.list).toBe(1);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });
});
