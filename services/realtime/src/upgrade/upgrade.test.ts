import { testRedis } from '@latchkey/testkit/redis';
import { beforeEach, describe, expect, it } from 'vitest';
import { FakeApps } from '../testing/fake-apps.ts';
import { type RawAnswer, RawSocket, upgradeRequest } from '../testing/raw-socket.ts';
import { startNode, type TestNode } from '../testing/test-node.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const WRONG_KEY = `lk_sock_${'x'.repeat(32)}`;

let apps: FakeApps;
let node: TestNode;
let key: string;
beforeEach(async () => {
  apps = new FakeApps();
  key = apps.create().socketKey;
  node = await startNode(apps, (await testRedis()).url);
});

const ask = async (request: string) => (await RawSocket.open(node.port, request)).answer();

/** What every refusal is, whatever was refused. */
function expectRefusal(answer: RawAnswer, status: number, code: string): void {
  expect(answer).toMatchObject({
    status,
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      connection: 'close',
    },
    body: { success: false, code, message: expect.any(String) },
  });
  expect(answer.headers['x-request-id']).toMatch(UUID);
  const details = (answer.body as { details?: unknown }).details;
  if (code === 'bad_request') expect(details).toEqual([{ path: expect.any(String), message: expect.stringMatching(/^must /) }]);
  else expect(details).toBeUndefined();
}

describe('an upgrade without a valid key', () => {
  it.each<[string, Record<string, string | string[] | undefined>]>([
    ['none', { Authorization: undefined }],
    ['an unknown one', { Authorization: `Bearer ${WRONG_KEY}` }],
    ['a malformed one', { Authorization: 'Bearer lk_sock_short' }],
    ['one of another kind', { Authorization: `Bearer lk_http_${'x'.repeat(32)}` }],
    ['an empty one', { Authorization: 'Bearer ' }],
    ['an empty header', { Authorization: '' }],
    ['another scheme', { Authorization: 'Basic bGs6c29jaw==' }],
    ['one of 10 KiB', { Authorization: `Bearer lk_sock_${'x'.repeat(10_240)}` }],
    ['one beyond ASCII', { Authorization: `Bearer lk_sock_${'ü'.repeat(16)}` }],
    ['two headers', { Authorization: [`Bearer ${WRONG_KEY}`, `Bearer ${WRONG_KEY}`] }],
    ['an empty one as sub-protocol', { Authorization: undefined, 'Sec-WebSocket-Protocol': 'cloudevents.json, bearer.' }],
    [
      'two of them as sub-protocols',
      { Authorization: undefined, 'Sec-WebSocket-Protocol': `cloudevents.json, bearer.${WRONG_KEY}, bearer.lk_sock_y` },
    ],
    ['a cookie', { Authorization: undefined, Cookie: `session=${WRONG_KEY}` }],
  ])('is refused: %s', async (_, headers) => {
    expectRefusal(await ask(upgradeRequest(undefined, headers)), 401, 'api_key_invalid');
  });

  it('is refused with a valid key given twice, wherever', async () => {
    const both = { 'Sec-WebSocket-Protocol': `cloudevents.json, bearer.${key}` };
    const twice = { Authorization: [`Bearer ${key}`, `Bearer ${key}`] };
    const other = { Authorization: [`Bearer ${key}`, `Bearer ${WRONG_KEY}`] };
    for (const headers of [both, twice, other]) expectRefusal(await ask(upgradeRequest(key, headers)), 401, 'api_key_invalid');
    expect(apps.calls.lookUp).toBe(0);
  });

  it('is refused with NUL in the key as a request that can not be read', async () => {
    expectRefusal(await ask(upgradeRequest(`lk_sock_\0${'x'.repeat(31)}`)), 400, 'bad_request');
  });
});

describe('an upgrade that is none', () => {
  it.each<[string, string, number, string]>([
    ['another path', upgradeRequest(WRONG_KEY, {}, 'GET /api/v1/realtime/x HTTP/1.1'), 404, 'not_found'],
    ['no path', upgradeRequest(WRONG_KEY, {}, 'OPTIONS * HTTP/1.1'), 404, 'not_found'],
    ['another method', upgradeRequest(WRONG_KEY, {}, 'POST /api/v1/realtime HTTP/1.1'), 405, 'bad_request'],
    ['HTTP/1.0', upgradeRequest(WRONG_KEY, {}, 'GET /api/v1/realtime HTTP/1.0'), 426, 'bad_request'],
    ['a body', upgradeRequest(WRONG_KEY, { 'Content-Length': '5' }), 400, 'bad_request'],
    ['a body in chunks', upgradeRequest(WRONG_KEY, { 'Transfer-Encoding': 'chunked' }), 400, 'bad_request'],
    ['no host', upgradeRequest(WRONG_KEY, { Host: undefined }), 400, 'bad_request'],
    ['a host with a user', upgradeRequest(WRONG_KEY, { Host: 'localhost@evil.com' }), 400, 'bad_request'],
    ['HTTP/2.0 as a version', 'GET /asyncapi.json HTTP/2.0\r\nHost: a\r\n\r\n', 400, 'bad_request'],
    ['two hosts', upgradeRequest(WRONG_KEY, { Host: ['a', 'b'] }), 400, 'bad_request'],
    ['no host and no upgrade', 'GET /asyncapi.json HTTP/1.1\r\n\r\n', 400, 'bad_request'],
    ['two hosts and no upgrade', 'GET /asyncapi.json HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n', 400, 'bad_request'],
    ['no Connection header', upgradeRequest(WRONG_KEY, { Connection: undefined }), 426, 'bad_request'],
    ['no Upgrade header', upgradeRequest(WRONG_KEY, { Upgrade: undefined }), 426, 'bad_request'],
    ['another protocol', upgradeRequest(WRONG_KEY, { Upgrade: 'h2c' }), 426, 'bad_request'],
    ['a header that is too long', upgradeRequest(WRONG_KEY, { 'X-Long': 'x'.repeat(20_000) }), 431, 'bad_request'],
    ['no HTTP', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400, 'bad_request'],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 'bad_request'],
    ['CONNECT', 'CONNECT localhost:80 HTTP/1.1\r\nHost: localhost:80\r\n\r\n', 405, 'bad_request'],
    ['a foreign expectation', upgradeRequest(WRONG_KEY, { Upgrade: undefined, Expect: 'x' }), 417, 'bad_request'],
  ])('is refused: %s', async (_, request, status, code) => {
    expectRefusal(await ask(request), status, code);
  });

  it.each<[string, Record<string, string | string[] | undefined>]>([
    ['no key', { 'Sec-WebSocket-Key': undefined }],
    ['a key that is too short', { 'Sec-WebSocket-Key': 'c2hvcnQ=' }],
    ['two keys', { 'Sec-WebSocket-Key': ['dGhlIHNhbXBsZSBub25jZQ==', 'dGhlIHNhbXBsZSBub25jZQ=='] }],
    ['no version', { 'Sec-WebSocket-Version': undefined }],
    ['another version', { 'Sec-WebSocket-Version': '12' }],
    ['sub-protocols that are none', { 'Sec-WebSocket-Protocol': 'cloudevents.json,,' }],
    ['one sub-protocol twice', { 'Sec-WebSocket-Protocol': 'cloudevents.json, cloudevents.json' }],
    ['sub-protocols without ours', { 'Sec-WebSocket-Protocol': 'json, text' }],
  ])('is refused with a valid key, and told which version is spoken: %s', async (_, headers) => {
    const answer = await ask(upgradeRequest(key, headers));
    expectRefusal(answer, 400, 'bad_request');
    expect(answer.headers['sec-websocket-version']).toBe('13');
  });

  it('takes no other sub-protocol beside a key as one', async () => {
    const headers = { Authorization: undefined, 'Sec-WebSocket-Protocol': `bearer.${key}` };
    const answer = await ask(upgradeRequest(undefined, headers));
    expectRefusal(answer, 400, 'bad_request');
  });
});
