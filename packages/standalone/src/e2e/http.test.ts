import { beforeAll, describe, expect, inject, it } from 'vitest';
import { checkAnswer } from '../testing/api.ts';
import { createApplication, createKey, type Key, type Owner, readState, sharedApi, signUp } from '../testing/caller.ts';
import { type RawAnswer, type RawOptions, sendRaw } from '../testing/raw-request.ts';
import { KEY_ROUTES, nameOf, SESSION_ROUTES } from '../testing/routes.ts';

let owner: Owner;
let key: Key;
let state: string;
beforeAll(async () => {
  owner = await signUp();
  key = await createKey(owner);
  await createApplication(key.api);
  state = await readState(owner);
});

/** Stands for the key, which is not there yet when cases are named. */
const KEY = '<key>';

/** Sends bytes and checks that each answer wears the envelope. */
async function send(bytes: string | Buffer, options?: RawOptions): Promise<RawAnswer[]> {
  const sent = typeof bytes === 'string' ? bytes.replaceAll(KEY, key.text) : bytes;
  const answers = await sendRaw(inject('latchkeyInstance').port, sent, options);
  for (const answer of answers) {
    const headers = new Headers(answer.headers);
    if (headers.get('content-type')?.startsWith('application/json') && answer.text.includes('"success"')) {
      checkAnswer(String(bytes).slice(0, 60), { ...answer, headers });
    }
  }
  return answers;
}

const codeOf = (answer: RawAnswer | undefined) =>
  answer && `${answer.status} ${(JSON.parse(answer.text) as { code?: string }).code ?? ''}`;
const request = (line: string, headers = '', body = '') => `${line} HTTP/1.1\r\nHost: x\r\n${headers}\r\n${body}`;
const json = (body: string) => `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`;
/** A request that makes an application, so that one that must not be taken shows. */
const create = (headers: string, body = '{"name":"smuggled application"}', version = '1.1') =>
  `POST /api/v1/panel/create-application HTTP/${version}\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\nContent-Type: application/json\r\n${headers}\r\n${body}`;
const chunked = (body: string) => `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;

describe('what is not valid HTTP is refused with the envelope', () => {
  it.each([
    ['garbage', 'garbage\r\n\r\n'],
    ['a TLS greeting', Buffer.from('16030100a5010000a10303', 'hex')],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['an unknown version', 'GET / HTTP/2.5\r\nHost: x\r\n\r\n'],
    ['an unknown method', request('BREW /')],
    ['a method in small letters', request('get /')],
    ['no host', 'GET /api/v1/panel/get-applications HTTP/1.1\r\n\r\n'],
    ['a host with a user', 'GET /healthz HTTP/1.1\r\nHost: localhost@evil.com\r\n\r\n'],
    ['HTTP/2.0 as a version', 'GET /healthz HTTP/2.0\r\nHost: x\r\n\r\n'],
    ['two hosts', 'GET /api/v1/panel/get-applications HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n'],
    ['line feeds alone', 'GET / HTTP/1.1\nHost: x\n\n'],
    ['NUL in a header', request('GET /', 'X-A: a\0b\r\n')],
    ['a carriage return in a header', request('GET /', 'X-A: a\rb\r\n')],
    ['a header without a colon', request('GET /', 'X-A\r\n')],
    ['a folded header', request('GET /', 'X-A: a\r\n b: c\r\n').replace('\r\n b', '\r\n\tb')],
    ['bytes that are no ASCII in the path', request('GET /\xff\xfe')],
    ['a blank in the path', request('GET /a b')],
    ['percent garbage in the path', request('GET /%zz')],
    ['percent garbage behind a route', request('GET /api/v1/panel/get-applications%')],
    ['percent garbage in an id', request('POST /api/v1/panel/api-keys/%ff/revoke')],
  ])('%s', async (_what, bytes) => {
    const [answer] = await send(bytes);
    expect(codeOf(answer)).toBe('400 bad_request');
  });

  it.each([
    ['both a length and chunks', 'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n', chunked('{}')],
    ['chunks and a length', 'Transfer-Encoding: chunked\r\nContent-Length: 5\r\n', chunked('{}')],
    ['two lengths', 'Content-Length: 2\r\nContent-Length: 3\r\n', '{} '],
    ['one length twice', 'Content-Length: 2\r\nContent-Length: 2\r\n', '{}'],
    ['a list of lengths', 'Content-Length: 2, 2\r\n', '{}'],
    ['a negative length', 'Content-Length: -1\r\n', '{}'],
    ['a signed length', 'Content-Length: +2\r\n', '{}'],
    ['a hexadecimal length', 'Content-Length: 0x2\r\n', '{}'],
    ['a length past all numbers', 'Content-Length: 99999999999999999999999999\r\n', '{}'],
    ['an unknown coding', 'Transfer-Encoding: xchunked\r\n', chunked('{}')],
    ['chunks that are not last', 'Transfer-Encoding: chunked, identity\r\n', chunked('{}')],
    ['chunks twice', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n', chunked('{}')],
    ['chunks twice in a list', 'Transfer-Encoding: chunked, chunked\r\n', chunked('{}')],
    ['the coding identity', 'Transfer-Encoding: identity\r\n', chunked('{}')],
    ['a blank before a colon', 'Transfer-Encoding : chunked\r\n', chunked('{}')],
    ['a coding on a line of its own', 'Transfer-Encoding:\r\n chunked\r\n', chunked('{}')],
    ['a vertical tab before a coding', 'Transfer-Encoding: \x0bchunked\r\n', chunked('{}')],
    ['a chunk size that is no number', 'Transfer-Encoding: chunked\r\n', 'zz\r\n{}\r\n0\r\n\r\n'],
    ['a negative chunk size', 'Transfer-Encoding: chunked\r\n', '-2\r\n{}\r\n0\r\n\r\n'],
    ['a chunk size past all numbers', 'Transfer-Encoding: chunked\r\n', 'ffffffffffffffffff\r\n{}\r\n0\r\n\r\n'],
    ['a chunk longer than it says', 'Transfer-Encoding: chunked\r\n', '1\r\n{}\r\n0\r\n\r\n'],
    ['chunks divided by line feeds', 'Transfer-Encoding: chunked\r\n', '2\n{}\n0\n\n'],
  ])('%s, and nothing behind it is taken for another request', async (_what, headers, body) => {
    const answers = await send(create(headers, body) + create('Content-Length: 31\r\n'), { answers: 3 });
    expect(answers.map(codeOf)).toEqual(['400 bad_request']);
  });

  it('a body that ends too soon', async () => {
    expect((await send(create('Content-Length: 100\r\n'), { end: true })).map(codeOf)).toEqual(['400 bad_request']);
    const cut = create('Transfer-Encoding: chunked\r\n', '1f\r\n{"name":"smuggled application"}\r\n');
    expect((await send(cut, { end: true })).map(codeOf)).toEqual(['400 bad_request']);
  });

  it('an expectation that nobody knows', async () => {
    const [answer] = await send(create('Expect: the unexpected\r\nX-Request-Id: mine\r\nContent-Length: 31\r\n'));
    expect([codeOf(answer), answer?.headers['x-request-id']]).toEqual(['417 bad_request', 'mine']);
  });

  it('CONNECT, with the methods that are allowed', async () => {
    const [answer] = await send(request('CONNECT example.com:443'));
    expect([codeOf(answer), answer?.headers.allow]).toEqual(['405 bad_request', 'GET']);
  });

  it.each([
    ['a long header', 431, request('GET /', `X-A: ${'a'.repeat(20_000)}\r\n`)],
    ['a header of 200 KB', 431, request('GET /', `X-A: ${'a'.repeat(200_000)}\r\n`)],
    ['many headers', 431, request('GET /', 'x: y\r\n'.repeat(4_000))],
    ['a long path', 431, request(`GET /${'a'.repeat(20_000)}`)],
    [
      'long extensions of a chunk',
      400,
      `${request('POST /', 'Transfer-Encoding: chunked\r\n')}2;${'a'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`,
    ],
  ])('%s', async (_what, status, bytes) => {
    expect(codeOf((await send(bytes))[0])).toBe(`${status} bad_request`);
  });

  it('a body that says that it is too large, before it comes', async () => {
    const [answer] = await send(create('Content-Length: 10000000000\r\n', ''));
    expect(codeOf(answer)).toBe('413 VALIDATION_ERROR');
  });

  it('a body in small chunks after its first 64 KiB', async () => {
    const [answer] = await send(create('Transfer-Encoding: chunked\r\n', '1\r\n \r\n'.repeat(80_000)));
    expect(codeOf(answer)).toBe('400 bad_request');
  });

  it('a body in chunks that does not end, once it is too large', async () => {
    const endless = create('Transfer-Encoding: chunked\r\n', `${(70_000).toString(16)}\r\n${' '.repeat(70_000)}\r\n`);
    expect(codeOf((await send(endless))[0])).toBe('413 VALIDATION_ERROR');
  });
});

describe('all of this', () => {
  it('changed nothing', async () => {
    expect(await readState(owner)).toBe(state);
  });
});

describe('valid HTTP that is seldom seen is answered', () => {
  const list = (target: string, headers = '') => request(`GET ${target}`, `Authorization: Bearer ${KEY}\r\n${headers}`);

  it.each([
    ['an absolute target', list('http://x/api/v1/panel/get-applications')],
    ['HTTP/1.0 without a host', list('/api/v1/panel/get-applications').replace('/1.1\r\nHost: x', '/1.0')],
    ['empty lines before it', `\r\n\r\n${list('/api/v1/panel/get-applications')}`],
    ['an encoded path', list('/api/v1/panel/get%2Dapplications')],
    ['an upgrade that is not offered', list('/api/v1/panel/get-applications', 'Connection: Upgrade\r\nUpgrade: websocket\r\n')],
    [
      'an accepted version',
      list('/api/v1/panel/get-applications', 'Accept-Version: 9.x\r\nAccept: image/png\r\nAccept-Encoding: x\r\n'),
    ],
    ['a body that is not wanted', `${list('/api/v1/panel/get-applications', 'Content-Length: 3\r\n')}abc`],
    ['a method override, which is not one', list('/api/v1/panel/get-applications', 'X-HTTP-Method-Override: DELETE\r\n')],
  ])('%s', async (_what, bytes) => {
    expect(codeOf((await send(bytes))[0])).toBe('200 ');
  });

  it('a body in chunks, with extensions and trailers', async () => {
    const other = await signUp();
    const { text } = await createKey(other);
    const bytes = create(
      'Transfer-Encoding: chunked\r\n',
      '5;a=b\r\n{"nam\r\n10\r\ne":"in chunks x"\r\n1\r\n}\r\n0\r\nX-Trailer: a\r\n\r\n',
    );
    expect(codeOf((await send(bytes.replace(KEY, text)))[0])).toBe('200 ');
    expect((await other.session.get('/api/v1/panel/get-applications')).data).toEqual([
      expect.objectContaining({ name: 'in chunks x' }),
    ]);
  });

  it('a request after a refused one on the same connection, whose body is skipped', async () => {
    const refused = create('Content-Length: 31\r\n').replace(KEY, 'nobody');
    const answers = await send(refused + list('/api/v1/panel/get-applications'), { answers: 2 });
    expect(answers.map(codeOf)).toEqual(['401 api_key_invalid', '200 ']);
  });

  it('several at once, in order', async () => {
    const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
    const bytes = ids.map((id) => list('/api/v1/panel/get-applications', `X-Request-Id: ${id}\r\n`)).join('');
    const answers = await send(bytes, { answers: ids.length });
    expect(answers.map(({ headers }) => headers['x-request-id'])).toEqual(ids);
  });

  it('as many at once as are accepted, then the end of the connection', async () => {
    const answers = await send(request('GET /healthz').repeat(150), { answers: 150 });
    expect(answers.map(codeOf)).toEqual(Array(101).fill('200 '));
    expect(answers.at(-1)?.headers.connection).toBe('close');
  });

  it('an upgrade that is not offered, and nothing behind it', async () => {
    const smuggled = create('Content-Length: 31\r\n');
    const head = request('POST /', `Content-Length: ${smuggled.length}\r\n`);
    const answers = await send(request('GET /healthz', 'Connection: Upgrade\r\nUpgrade: h2c\r\n') + head + smuggled, {
      answers: 3,
    });
    expect(answers.map(codeOf)).toEqual(['200 ']);
    expect(answers[0]?.headers.connection).toBe('close');
  });

  it('100 Continue to whoever waits for it', async () => {
    const other = await createKey(await signUp());
    const body = '{"name":"after a pause"}';
    const bytes = create(`Expect: 100-continue\r\n${json(body).split('\r\n')[1]}\r\n`, body).replace(KEY, other.text);
    expect(codeOf((await send(bytes))[0])).toBe('200 ');
  });
});

describe('a path', () => {
  it.each([
    '/',
    '/api',
    '/api/v1/panel',
    '/api/v1/panel/',
    '/api/v1/panel/get-applications/',
    '/api/v1/panel//get-applications',
    '//api/v1/panel/get-applications',
    '/API/V1/panel/get-applications',
    '/api/v2/panel/get-applications',
    '/api/v1/panel/get-presigned-upload-url',
    '/api/v1/panel/check-file-uploaded-status',
    '/api/v1/panel/api-keys/',
    '/api/v1/panel/api-keys/x/revoke/y',
    '/api/v1/auth/../panel/get-applications',
    '/api/v1/panel/get-applications;a=b',
    '/docs/static/..%2f..%2f..%2fpackage.json',
    '/docs/static/../../../package.json',
    '/.env',
    '/metrics',
    `/${'a'.repeat(8_000)}`,
    '/%00',
    '/constructor',
    '/__proto__',
  ])('that is no route is not found: %s', async (path) => {
    for (const method of ['GET', 'POST', 'DELETE']) {
      const [answer] = await send(request(`${method} ${path}`, 'Content-Length: 0\r\n'));
      expect(codeOf(answer)).toBe('404 not_found');
    }
  });

  it('that is a route names its methods when another is tried', async () => {
    const paths = new Map<string, Set<string>>();
    for (const { method, path } of [...KEY_ROUTES, ...SESSION_ROUTES]) {
      const methods = paths.get(path) ?? new Set();
      for (const name of method === 'GET' ? ['GET', 'HEAD'] : [method]) methods.add(name);
      paths.set(path, methods);
    }
    for (const [path, methods] of paths) {
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND']) {
        if (methods.has(method)) continue;
        for (const target of [path, `${path}?a=b`, `http://x${path}`, path.replace('panel', 'p%61nel')]) {
          const [answer] = await send(request(`${method} ${target}`, 'Content-Length: 0\r\n'));
          expect(codeOf(answer), `${method} ${target}`).toBe('405 bad_request');
          expect(new Set(answer?.headers.allow?.split(', ')), `${method} ${target}`).toEqual(methods);
        }
      }
    }
  });

  it.each(['/healthz', '/readyz', '/openapi.json', '/docs'])('beside the interface names its methods too: %s', async (path) => {
    const [answer] = await send(request(`POST ${path}`, 'Content-Length: 0\r\n'));
    expect([codeOf(answer), answer?.headers.allow]).toEqual(['405 bad_request', 'GET, HEAD']);
  });
});

describe('HEAD', () => {
  const head = (path: string, headers: Record<string, string> = {}) =>
    fetch(`${sharedApi().baseUrl}${path}`, { method: 'HEAD', headers });

  it('answers as GET does, without the body', async () => {
    const authorization = `Bearer ${key.text}`;
    for (const route of KEY_ROUTES.filter(({ method, names }) => method === 'GET' && !names)) {
      for (const headers of [{ authorization }, {}] as Array<Record<string, string>>) {
        const response = await head(route.path, headers);
        const got = await fetch(`${sharedApi().baseUrl}${route.path}`, { headers });
        expect(response.status, nameOf(route)).toBe(got.status);
        expect(response.headers.get('content-length')).toBe(String((await got.arrayBuffer()).byteLength));
        expect(response.headers.get('x-request-id')).toBeTruthy();
        expect(await response.text()).toBe('');
      }
    }
  });

  it('is no way around authentication', async () => {
    expect((await head('/api/v1/panel/api-keys')).status).toBe(401);
    expect((await head('/api/v1/panel/get-applications')).status).toBe(401);
  });
});

describe('the request id', () => {
  const idFor = async (given?: string, path = '/api/v1/panel/get-applications') =>
    (await sharedApi().get(path, undefined, given === undefined ? {} : { headers: { 'x-request-id': given } })).headers.get(
      'x-request-id',
    );

  it('is the client’s own when it is acceptable, on every answer', async () => {
    for (const path of ['/api/v1/panel/get-applications', '/nowhere', '/api/v1/panel/create-application']) {
      expect(await idFor('My_request-1.0', path)).toBe('My_request-1.0');
    }
    expect(await idFor('x'.repeat(128))).toBe('x'.repeat(128));
  });

  it.each(['x'.repeat(129), 'a b', 'a,b', '"a"', 'a/b', '{}', 'é'.normalize('NFC')])(
    'is a new UUID instead of %j',
    async (given) => {
      expect(await idFor(given)).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    },
  );

  it('is a new UUID where the client gave two', async () => {
    const [answer] = await send(request('GET /api/v1/panel/get-applications', 'X-Request-Id: a\r\nX-Request-Id: b\r\n'));
    expect(answer?.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('is on the probes and the documentation too', async () => {
    for (const path of ['/healthz', '/readyz', '/openapi.json', '/docs/']) {
      const response = await fetch(`${sharedApi().baseUrl}${path}`, { headers: { 'x-request-id': 'mine' } });
      expect([response.status, response.headers.get('x-request-id')]).toEqual([200, 'mine']);
      await response.body?.cancel();
    }
  });
});
