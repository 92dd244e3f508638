import { Code, ConnectError } from '@connectrpc/connect';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis/redis';
import { seededRandom } from '@latchkey/testkit/values/random';
import { beforeEach, describe, expect, it } from 'vitest';
import { type FakeApplication, FakeApps } from '../testing/fake-apps.ts';
import { clientFrame, type Headers, OPCODE, openRawSocket, upgradeRequest } from '../testing/raw-socket.ts';
import { startNode, type TestNode } from '../testing/test-node.ts';

const UNKNOWN = `lk_sock_${'x'.repeat(32)}`;

let apps: FakeApps;
let application: FakeApplication;
let key: string;
let node: TestNode;
beforeEach(async () => {
  apps = new FakeApps();
  application = apps.create();
  key = application.socketKey;
  node = await startNode(apps, (await testRedis()).url, { rejectionsPerMinute: 1_000_000 });
});

const open = (...request: Parameters<typeof upgradeRequest>) => openRawSocket(node.port, upgradeRequest(...request));
const responseTo = async (request: string) => (await openRawSocket(node.port, request)).response();

describe('an upgrade with a valid key', () => {
  it('is answered with 101, the id of the request, and cloudevents.json where that is offered', async () => {
    const own = await (await open(key, { 'X-Request-Id': 'my-id.1' })).response();
    expect(own).toMatchObject({ status: 101, headers: { 'x-request-id': 'my-id.1' } });
    expect(own.headers).not.toHaveProperty('sec-websocket-protocol');
    const browser = await (
      await open(undefined, { 'Sec-WebSocket-Protocol': `text, bearer.${key}, cloudevents.json` })
    ).response();
    expect(browser).toMatchObject({ status: 101, headers: { 'sec-websocket-protocol': 'cloudevents.json' } });
    const { 'x-request-id': requestId } = browser.headers;
    const line = expect.objectContaining({ msg: 'socket opened', requestId });
    await eventually(() => expect(node.lines).toContainEqual(line));
  });

  it('is not compressed, and takes any origin', async () => {
    const headers = { Origin: 'https://evil.example', 'Sec-WebSocket-Extensions': 'permessage-deflate' };
    const response = await (await open(key, headers)).response();
    expect(response.status).toBe(101);
    expect(response.headers).not.toHaveProperty('sec-websocket-extensions');
  });

  it.each<[string[], string]>([
    [['abc'], ''],
    [['-1'], ''],
    [['01'], ''],
    [['3'], ''],
    [['9'.repeat(400)], ''],
    [['1', '1'], ''],
    [[], '?lastEventId=%'],
    [[], '?lastEventId=1&lastEventId=1'],
    [['abc'], '?lastEventId=1'],
  ])('starts at the snapshot for a malformed Last-Event-ID: %j%s', async (ids, query) => {
    apps.logVersions(application, 2);
    const socket = await open(key, { 'Last-Event-ID': ids }, `GET /api/v1/realtime${query} HTTP/1.1`);
    expect(await socket.ready()).toMatchObject({ data: { lastSequence: '2', resumed: false } });
    expect(apps.calls.list).toBe(0);
  });

  it('reads frames that come with the request, but no second request', async () => {
    const early = await openRawSocket(node.port, upgradeRequest(key), clientFrame(OPCODE.ping, 'early'));
    await eventually(() => expect(early.payloads(OPCODE.pong)).toEqual(['early']));
    const twice = await openRawSocket(node.port, upgradeRequest(key), upgradeRequest(key));
    expect(await twice.closeCode()).toBe(1002);
  });
});

const bearer = (protocol: string) => ({ 'Sec-WebSocket-Protocol': protocol });
const REJECTED: ReadonlyArray<readonly [string, number, Headers, string?]> = [
  ['no key', 401, {}],
  ['an unknown key', 401, { Authorization: `Bearer ${UNKNOWN}` }],
  ['a malformed key', 401, { Authorization: 'Bearer lk_sock_short' }],
  ['another scheme', 401, { Authorization: 'Basic bGs6c29jaw==' }],
  ['two keys', 401, { Authorization: [`Bearer ${UNKNOWN}`, `Bearer ${UNKNOWN}`] }],
  ['two keys as sub-protocols', 401, bearer(`cloudevents.json, bearer.${UNKNOWN}, bearer.lk_sock_y`)],
  ['a key as the only sub-protocol', 400, bearer(`bearer.${UNKNOWN}`)],
  ['another path', 404, {}, 'GET /api/v1/realtime/x HTTP/1.1'],
  ['another method', 405, {}, 'POST /api/v1/realtime HTTP/1.1'],
  ['HTTP/1.0', 426, {}, 'GET /api/v1/realtime HTTP/1.0'],
  ['a body', 400, { 'Content-Length': '5' }],
  ['no host', 400, { Host: undefined }],
  ['two hosts', 400, { Host: ['a', 'b'] }],
  ['no Connection header', 426, { Connection: undefined }],
  ['another protocol', 426, { Upgrade: 'h2c' }],
  ['long headers', 431, { 'X-Long': 'x'.repeat(20_000) }],
  ['CONNECT', 405, {}, 'CONNECT localhost:80 HTTP/1.1'],
  ['an unknown expectation', 417, { Upgrade: undefined, Expect: 'x' }],
];
const CODES: Readonly<Record<number, string>> = { 401: 'api_key_invalid', 404: 'not_found' };

describe('rejects with the error envelope', () => {
  it.each(REJECTED.map(([what, status, headers, line]) => [what, status, headers, line ?? undefined] as const))(
    '%s, with %i',
    async (_what, status, headers, requestLine) => {
      const response = await responseTo(upgradeRequest(undefined, headers, requestLine));
      expect(response).toMatchObject({
        status,
        headers: { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store', connection: 'close' },
        body: { success: false, code: CODES[status] ?? 'bad_request', message: expect.any(String) },
      });
      expect(response.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
      expect(response.headers['www-authenticate']).toBe(status === 401 ? 'Bearer realm="latchkey"' : undefined);
    },
  );

  it.each<[string, Headers]>([
    ['no Sec-WebSocket-Key', { 'Sec-WebSocket-Key': undefined }],
    ['another version', { 'Sec-WebSocket-Version': '12' }],
    ['malformed sub-protocols', { 'Sec-WebSocket-Protocol': 'cloudevents.json,,' }],
    ['other sub-protocols', { 'Sec-WebSocket-Protocol': 'json, text' }],
  ])('a handshake with %s and a valid key', async (_what, headers) => {
    const response = await responseTo(upgradeRequest(key, headers));
    expect(response).toMatchObject({ status: 400, headers: { 'sec-websocket-version': '13' }, body: { code: 'bad_request' } });
  });

  it('what is not HTTP/1', async () => {
    for (const text of ['\x16\x03\x01\x02\x00\x01', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n']) {
      expect(await responseTo(text)).toMatchObject({ status: 400, body: { success: false } });
    }
  });

  it('random bytes, requests and frames, without an error of its own', async () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const below = seededRandom(seed);
    const noise = () => Buffer.from(Array.from({ length: below(300) }, () => below(256)));
    const request = Buffer.from(upgradeRequest(key));
    const mutate = () => {
      const at = below(request.length);
      return Buffer.concat([request.subarray(0, at), noise().subarray(0, below(5)), request.subarray(at + below(3))]);
    };
    const frame = () => clientFrame(below(16), noise(), { isFinal: below(2) > 0, hasReservedBit: below(8) === 0 });
    const kinds = [noise, mutate, () => Buffer.concat([request, noise()]), () => Buffer.concat([request, frame(), frame()])];
    const exchanges = Array.from({ length: 120 }, async () => {
      const { client } = await openRawSocket(node.port, (kinds[below(kinds.length)] as () => Buffer)());
      client.socket.end();
      await client.ended;
      expect(client.received(), `seed ${seed}`).toMatch(/^$|^HTTP\/1.1 (101|4\d\d[\s\S]*"success":false)/);
    });
    await Promise.all(exchanges);
    expect((await (await open(key)).response()).status).toBe(101);
    expect(node.lines.filter(({ level }) => Number(level) >= 50)).toEqual([]);
  });
});

it('writes no key into logs and responses', async () => {
  const requests = [key, UNKNOWN].flatMap((text) => [
    upgradeRequest(text),
    upgradeRequest(undefined, bearer(`cloudevents.json, bearer.${text}`)),
    upgradeRequest(text, { 'Sec-WebSocket-Key': 'x' }),
    upgradeRequest(undefined, {}, `GET /api/v1/realtime?key=${text} HTTP/1.1`),
    `GET /${text} HTTP/1.1\r\nHost: a\r\n${text}\r\n\r\n`,
  ]);
  const sockets = await Promise.all(requests.map((request) => openRawSocket(node.port, request)));
  for (const socket of sockets) await socket.response();
  const written = JSON.stringify(node.lines) + sockets.map(({ client }) => client.received()).join();
  for (const text of [key, UNKNOWN]) expect(written).not.toContain(text.slice('lk_sock_'.length));
  expect(written).toContain('upgrade rejected');
});

describe('while the apps service can not be asked', () => {
  it.each([new ConnectError('no', Code.Unavailable), new TypeError('oops')])(
    'rejects with 503 and Retry-After: %s',
    async (err) => {
      apps.failWith(err);
      const response = await (await open(key)).response();
      expect(response).toMatchObject({ status: 503, headers: { 'retry-after': '1' }, body: { code: 'INTERNAL_ERROR' } });
    },
  );

  it('rejects within 5 s where the lookup or the log does not respond', async () => {
    apps.logVersions(application, 2);
    const startedAt = performance.now();
    apps.beforeList = () => new Promise(() => undefined);
    const withoutLog = await open(key, { 'Last-Event-ID': '0' });
    await eventually(() => expect(apps.calls.lookUp).toBe(1));
    apps.waitFor(new Promise(() => undefined));
    const withoutLookUp = await open(apps.create().socketKey);
    for (const socket of [withoutLog, withoutLookUp]) expect((await socket.response()).status).toBe(503);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });
});
