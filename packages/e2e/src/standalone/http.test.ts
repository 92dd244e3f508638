import { beforeAll, describe, expect, inject, it } from 'vitest';
import { checkAnswer } from '../client/api.ts';
import { createApplication, createKey, type Key, type Owner, readState, sharedApi, signUp } from '../client/caller.ts';
import { type RawAnswer, type RawOptions, sendRaw } from '../client/raw-request.ts';
import { KEY_ROUTES, nameOf, SESSION_ROUTES } from '../client/routes.ts';

const LIST = '/api/v1/panel/get-applications';
let owner: Owner;
let key: Key;
let state: string;
beforeAll(async () => {
  owner = await signUp();
  key = await createKey(owner);
  await createApplication(key.api);
  state = await readState(owner);
});

/** Stands for the key, which does not exist yet when cases are named. */
const KEY = '<key>';

/** Sends bytes and checks that each response has the envelope. */
async function send(bytes: string | Buffer, options?: RawOptions): Promise<RawAnswer[]> {
  const sent = typeof bytes === 'string' ? bytes.replaceAll(KEY, key.text) : bytes;
  const answers = await sendRaw(inject('latchkeyInstance').port, sent, options);
  for (const answer of answers) {
    const headers = new Headers(answer.headers);
    const isEnvelope = headers.get('content-type')?.startsWith('application/json') && answer.text.includes('"success"');
    if (isEnvelope) checkAnswer(String(bytes).slice(0, 60), { ...answer, headers });
  }
  return answers;
}

const codeOf = (answer: RawAnswer | undefined) =>
  answer && `${answer.status} ${(JSON.parse(answer.text) as { code?: string }).code ?? ''}`.trim();
const request = (line: string, headers = '', body = '') => `${line} HTTP/1.1\r\nHost: x\r\n${headers}\r\n${body}`;
const list = (target = LIST, headers = '') => request(`GET ${target}`, `Authorization: Bearer ${KEY}\r\n${headers}`);
/** A request that creates an application, so that one that must not be taken is noticed. */
const create = (headers: string, body = '{"name":"smuggled application"}') =>
  `${list().replace(`GET ${LIST}`, 'POST /api/v1/panel/create-application').slice(0, -2)}Content-Type: application/json\r\n${headers}\r\n${body}`;
/** Texts in which `~` stands for the end of a line and `|` divides them. */
const linesOf = (text: string) => text.replaceAll('~', '\r\n').split('|');
const chunked = (body: string) => `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;

describe('invalid HTTP is rejected with the envelope:', () => {
  it.each([
    ...linesOf('garbage~~|PRI * HTTP/2.0~~SM~~|GET / HTTP/2.5~Host: x~~|BREW / HTTP/1.1~Host: x~~|get / HTTP/1.1~Host: x~~'),
    ...linesOf(`GET ${LIST} HTTP/1.1~~|GET ${LIST} HTTP/1.1~Host: a~Host: a~~|GET / HTTP/1.1\nHost: x\n\n`),
    ...linesOf('X-A: a\0b~|X-A: a\rb~|X-A~|X-A: a~\tb: c~').map((header) => request('GET /', header)),
    ...['/\xff\xfe', '/a b', '/%zz', `${LIST}%`, '/api/v1/panel/api-keys/%ff'].map((path) => request(`GET ${path}`)),
  ])('%j', async (bytes) => {
    expect((await send(bytes)).map(codeOf)).toEqual(['400 bad_request']);
  });

  const TWO = 'Content-Length: 2\r\n';
  const CHUNKED = 'Transfer-Encoding: chunked\r\n';
  it.each([
    ...linesOf(`5~${CHUNKED.trim()}|2~Content-Length: 3|2, 2|-1|+2|0x2|${'9'.repeat(26)}`).map((value) => [
      `Content-Length: ${value}\r\n`,
      '{} ',
    ]),
    [TWO + TWO, '{}'],
    ...linesOf('xchunked|chunked, identity|chunked, chunked|identity|\x0bchunked').map((value) => [
      `Transfer-Encoding: ${value}\r\n`,
      chunked('{}'),
    ]),
    ...linesOf(`${CHUNKED}Content-Length: 5~|${CHUNKED}${CHUNKED}|Transfer-Encoding : chunked~|Transfer-Encoding:~ chunked~`).map(
      (headers) => [headers, chunked('{}')],
    ),
    ...linesOf('zz~{}~0~~|-2~{}~0~~|ffffffffffffffffff~{}~0~~|1~{}~0~~|2\n{}\n0\n\n').map((body) => [CHUNKED, body]),
  ])('%j with %j, and nothing after it is taken for another request', async (headers = '', body = '') => {
    const answers = await send(create(headers, body) + create('Content-Length: 31\r\n'), { answers: 3 });
    expect(answers.map(codeOf)).toEqual(['400 bad_request']);
  });

  it('a TLS greeting, a body that ends too soon, CONNECT and an unknown expectation', async () => {
    expect((await send(Buffer.from('16030100a5010000a10303', 'hex'))).map(codeOf)).toEqual(['400 bad_request']);
    const cut = create(CHUNKED, '1f\r\n{"name":"smuggled application"}\r\n');
    for (const bytes of [create('Content-Length: 100\r\n'), cut])
      expect((await send(bytes, { end: true })).map(codeOf)).toEqual(['400 bad_request']);
    const [connected] = await send(request('CONNECT example.com:443'));
    expect([codeOf(connected), connected?.headers.allow]).toEqual(['405 bad_request', 'GET']);
    const [expected] = await send(create('Expect: the unexpected\r\nX-Request-Id: mine\r\nContent-Length: 31\r\n'));
    expect([codeOf(expected), expected?.headers['x-request-id']]).toEqual(['417 bad_request', 'mine']);
  });

  it.each([
    ['431 bad_request', request('GET /', `X-A: ${'a'.repeat(20_000)}\r\n`)],
    ['431 bad_request', request('GET /', `X-A: ${'a'.repeat(200_000)}\r\n`)],
    ['431 bad_request', request('GET /', 'x: y\r\n'.repeat(4_000))],
    ['431 bad_request', request(`GET /${'a'.repeat(20_000)}`)],
    ['400 bad_request', `${request('POST /', CHUNKED)}2;${'a'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`],
    ['413 VALIDATION_ERROR', create('Content-Length: 10000000000\r\n', '')],
    ['400 bad_request', create(CHUNKED, '1\r\n \r\n'.repeat(80_000))],
    ['413 VALIDATION_ERROR', create(CHUNKED, `${(70_000).toString(16)}\r\n${' '.repeat(70_000)}\r\n`)],
  ])('%s for what is too large', async (expected, bytes) => {
    expect(codeOf((await send(bytes))[0])).toBe(expected);
  });

  it('and none of these requests changed anything', async () => {
    expect(await readState(owner)).toBe(state);
  });
});

describe('valid HTTP that is seldom seen is answered:', () => {
  it.each([
    list(`http://x${LIST}`),
    list().replace('/1.1\r\nHost: x', '/1.0'),
    `\r\n\r\n${list()}`,
    list('/api/v1/panel/get%2Dapplications'),
    list(LIST, 'Connection: Upgrade\r\nUpgrade: websocket\r\n'),
    list(LIST, 'Accept-Version: 9.x\r\nAccept: image/png\r\nAccept-Encoding: x\r\n'),
    ...[`${list(LIST, 'Content-Length: 3\r\n')}abc`, list(LIST, 'X-HTTP-Method-Override: DELETE\r\n')],
  ])('%j', async (bytes) => {
    expect(codeOf((await send(bytes))[0])).toBe('200');
  });

  it('a body in chunks, with extensions and trailers, and after 100 Continue', async () => {
    const other = await signUp();
    const { text } = await createKey(other);
    const body = '5;a=b\r\n{"nam\r\n10\r\ne":"in chunks x"\r\n1\r\n}\r\n0\r\nX-Trailer: a\r\n\r\n';
    expect(codeOf((await send(create('Transfer-Encoding: chunked\r\n', body).replace(KEY, text)))[0])).toBe('200');
    expect(codeOf((await send(create('Expect: 100-continue\r\nContent-Length: 31\r\n').replace(KEY, text)))[0])).toBe('200');
    const { data } = await other.session.get(LIST);
    expect(data.map(({ name }: { name: string }) => name)).toEqual(['in chunks x', 'smuggled application']);
  });

  it('several on one connection in order, also after a rejected one whose body is skipped', async () => {
    const refused = create('Content-Length: 31\r\n').replace(KEY, 'unknown');
    const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
    const bytes = refused + ids.map((id) => list(LIST, `X-Request-Id: ${id}\r\n`)).join('');
    const [first, ...others] = await send(bytes, { answers: ids.length + 1 });
    expect([codeOf(first), others.map(({ headers }) => headers['x-request-id'])]).toEqual(['401 api_key_invalid', ids]);
  });

  it('and none after an upgrade, but the end of the connection', async () => {
    const smuggled = create('Content-Length: 31\r\n');
    const upgrade = request('GET /healthz', 'Connection: Upgrade\r\nUpgrade: h2c\r\n');
    const upgraded = await send(upgrade + request('POST /', `Content-Length: ${smuggled.length}\r\n`) + smuggled, { answers: 3 });
    expect([upgraded.map(codeOf), upgraded[0]?.headers.connection]).toEqual([['200'], 'close']);
  });
});

describe('a path', () => {
  const panel = [
    ...'|/|/get-applications/|//get-applications|/get-presigned-upload-url|/check-file-uploaded-status'.split('|'),
    ...'/api-keys/|/api-keys/x/revoke/y'.split('|'),
  ];
  it.each([
    ...panel.map((path) => `/api/v1/panel${path}`),
    ...'/api|//api/v1/panel/get-applications|/API/V1/panel/get-applications|/api/v2/panel/get-applications'.split('|'),
    `${LIST};a=b`,
    '/api/v1/auth/../panel/get-applications',
    '/docs/static/..%2f..%2f..%2fpackage.json',
    '/docs/static/../../../package.json',
    ...['/.env', '/metrics', `/${'a'.repeat(8_000)}`, '/%00', '/constructor', '/__proto__'],
  ])('under an unknown route is not found: %s', async (path) => {
    for (const method of ['GET', 'POST', 'DELETE'])
      expect(codeOf((await send(request(`${method} ${path}`, 'Content-Length: 0\r\n')))[0])).toBe('404 not_found');
  });

  it('that is a route names its methods when another is tried', async () => {
    const routes = [
      ...KEY_ROUTES,
      ...SESSION_ROUTES,
      { method: 'OPTIONS', path: '/api/v1/panel/uploads' },
      ...['/healthz', '/readyz', '/openapi.json', '/docs'].map((path) => ({ method: 'GET', path })),
    ];
    for (const [path, same] of Map.groupBy(routes, (route) => route.path)) {
      const methods = new Set(same.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method])));
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'].filter((one) => !methods.has(one))) {
        const [answer] = await send(request(`${method} ${path}`, 'Content-Length: 0\r\n'));
        expect([codeOf(answer), new Set(answer?.headers.allow?.split(', '))], `${method} ${path}`).toEqual([
          '405 bad_request',
          methods,
        ]);
      }
    }
  });
});

it('HEAD is answered as GET is, without the body', async () => {
  for (const route of KEY_ROUTES.filter(({ method, names }) => method === 'GET' && !names)) {
    for (const headers of [{ authorization: `Bearer ${key.text}` }, {}] as Array<Record<string, string>>) {
      const response = await fetch(sharedApi().baseUrl + route.path, { method: 'HEAD', headers });
      const got = await fetch(sharedApi().baseUrl + route.path, { headers });
      const length = String((await got.arrayBuffer()).byteLength);
      expect([response.status, response.headers.get('content-length'), await response.text()], nameOf(route)).toEqual([
        got.status,
        length,
        '',
      ]);
    }
  }
});

it('the request id of the client is in every response', async () => {
  for (const path of [LIST, '/nowhere', '/api/v1/panel/create-application', '/healthz', '/readyz', '/openapi.json', '/docs/']) {
    const response = await fetch(sharedApi().baseUrl + path, { headers: { 'x-request-id': 'My_request-1.0' } });
    expect(response.headers.get('x-request-id'), path).toBe('My_request-1.0');
    await response.body?.cancel();
  }
});
