import { beforeAll, describe, expect, it } from 'vitest';
import type { Body } from '../testing/api.ts';
import { createApplication, createKey, type Owner, readState, sharedApi, signUp, unique } from '../testing/caller.ts';
import { type ObjectSchema, readDocument } from '../testing/document.ts';
import { KEY_ROUTES, nameOf, type RouteCase, SESSION_ROUTES } from '../testing/routes.ts';

let owner: Owner;
let applicationId: string;
let state: string;
beforeAll(async () => {
  owner = await signUp();
  applicationId = await createApplication(owner.session);
  await createKey(owner);
  state = await readState(owner);
});

const SIGN_UP: RouteCase = {
  method: 'POST',
  path: '/api/v1/auth/sign-up',
  request: () => ({ body: { username: unique('u'), email: `${unique('u')}@example.com`, password: 'a long passphrase' } }),
};
const SIGN_IN: RouteCase = {
  method: 'POST',
  path: '/api/v1/auth/sign-in',
  request: () => ({ body: { email: `${unique('nobody')}@example.com`, password: 'a long passphrase' } }),
};

function takesJson({ request }: RouteCase): boolean {
  const { body } = request('');
  return body !== undefined && !(body instanceof Uint8Array);
}

const WITH_BODY = [...KEY_ROUTES, ...SESSION_ROUTES, SIGN_UP, SIGN_IN].filter(takesJson);

/** Bodies that no route takes, by what is wrong with them. Texts are sent as they are. */
const BAD_BODIES: Record<string, Body> = {
  'no body': null,
  'an empty one': '',
  'white space': '  \n',
  'broken JSON': '{"name":',
  'a comma too many': '{"name":"abcdef",}',
  'single quotes': "{'name':'abcdef'}",
  'two documents': '{}{}',
  'a form': 'name=abcdef&applicationId=1',
  XML: '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>',
  'a number': '1',
  'a number out of range': '1e999',
  text: '"abcdef"',
  null: 'null',
  true: 'true',
  'an array': '[]',
  'an array of an object': '[{}]',
  'an empty object': '{}',
  'NUL bytes': '\0\0',
  'half a surrogate': String.raw`{"name":"abcdef\ud800"}`,
  'invalid UTF-8': new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]),
  'UTF-16': new Uint8Array(Buffer.from('{"name":"abcdef"}', 'utf16le')),
  'a hundred levels': `${'{"a":'.repeat(100)}1${'}'.repeat(100)}`,
  'thirty thousand levels': `${'['.repeat(30_000)}${']'.repeat(30_000)}`,
};

/** Values that no property takes. */
const BAD_VALUES: readonly unknown[] = [null, 0, -1, 1.5, 1e308, [], {}, [[]], { toString: 1 }, [null], [{}], ''];

const LIMIT = 64 * 1024;

describe.each(WITH_BODY.map((route) => [nameOf(route), route] as const))('%s', (_name, route) => {
  const send = (body: Body, headers: Record<string, string> = {}) => {
    const { query } = route.request(applicationId);
    return owner.session.send(route.method, route.path, { ...(query && { query }), body, headers });
  };
  const refuse = async (body: Body, what: string, status = 400, headers: Record<string, string> = {}) => {
    const answer = await send(body, headers);
    expect([answer.status, answer.code, answer.message], what).toEqual([
      status,
      'VALIDATION_ERROR',
      'Request does not match the schema',
    ]);
  };
  const documented = async (): Promise<readonly ObjectSchema[]> => {
    const { paths } = await readDocument(sharedApi().baseUrl);
    const [method = '', path = ''] = nameOf(route).replace(':id', '{id}').split(' ');
    const schema = paths[path]?.[method.toLowerCase()]?.requestBody?.content['application/json']?.schema ?? {};
    return schema.oneOf ?? schema.anyOf ?? [schema];
  };
  const valid = () => route.request(applicationId).body as Record<string, unknown>;

  it('refuses what is no JSON object', async () => {
    for (const [what, body] of Object.entries(BAD_BODIES)) {
      // Without a body there is no type either.
      await refuse(body, what);
    }
  });

  it('refuses each property that is missing or of another type', async () => {
    const schemas = await documented();
    for (const name of Object.keys(valid())) {
      expect(
        schemas.some(({ properties = {} }) => name in properties),
        name,
      ).toBe(true);
      const isFilled = schemas.some(({ properties = {} }) => properties[name]?.minLength);
      const { [name]: _left, ...rest } = valid();
      if (schemas.every(({ required = [] }) => required.includes(name))) await refuse(rest, `no ${name}`);
      for (const value of BAD_VALUES) {
        // Any text may be tried as an id, an email or a code, and an empty list of applications is none.
        if (value === '' && !isFilled && ['applicationId', 'fileId', 'code', 'value', 'email', 'password'].includes(name))
          continue;
        await refuse({ ...valid(), [name]: value }, `${name} = ${JSON.stringify(value)}`);
      }
    }
  });

  it('refuses properties that it does not know, whatever they are called', async () => {
    for (const name of [
      'surplus',
      'constructor',
      'prototype',
      'toString',
      'hasOwnProperty',
      '__defineGetter__',
      '',
      'Name',
      'a'.repeat(1_000),
    ]) {
      await refuse({ ...valid(), [name]: 'x' }, name);
    }
    for (const name of ['__proto__', String.raw`\u005f_proto__`]) {
      await refuse(JSON.stringify(valid()).replace('{', `{"${name}":{"isAdmin":true},`), name);
    }
  });

  it('refuses a property that is given twice, even with one value', async () => {
    const [name = ''] = Object.keys(valid());
    const text = JSON.stringify(valid());
    await refuse(text.replace('{', `{${JSON.stringify(name)}:${JSON.stringify(valid()[name])},`), 'twice');
    await refuse(
      text.replace('{', `{"\\u${name.charCodeAt(0).toString(16).padStart(4, '0')}${name.slice(1)}":1,`),
      'twice, once escaped',
    );
  });

  it('refuses another content type, or none', async () => {
    const text = JSON.stringify(valid());
    const types = [
      'text/plain',
      'text/json',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'application/octet-stream',
      'application/xml',
      'application/json-patch+json',
      'application/jsonp',
      'application/json, text/plain',
      'json',
      '*/*',
      '__proto__',
      'constructor/prototype',
      ' ',
    ];
    for (const type of types) await refuse(text, type, 415, { 'content-type': type });
    await refuse(new Uint8Array(Buffer.from(text)), 'none', 415, { 'content-type': '' });
  });

  it('takes 64 KiB and refuses one byte more', async () => {
    const padded = (size: number) => {
      const text = JSON.stringify(valid());
      return `${text}${' '.repeat(size - Buffer.byteLength(text))}`;
    };
    await refuse(padded(LIMIT + 1), 'one byte more', 413);
    await refuse(padded(70_000), '70 KB', 413);
    await refuse('x'.repeat(1_000_000), '1 MB', 413);
    await refuse(`${'['.repeat(LIMIT)}`, 'exactly 64 KiB that are no JSON');
  });
});

describe('all of this', () => {
  it('changed nothing', async () => {
    expect(await readState(owner)).toBe(state);
  });
});

describe('a body of exactly 64 KiB', () => {
  it('is taken like any other', async () => {
    const { session } = await signUp();
    const text = JSON.stringify({ name: unique('app-') });
    const answer = await session.post('/api/v1/panel/create-application', text.padEnd(LIMIT, ' '));
    expect(answer.status).toBe(200);
  });

  it('may have any white space, a byte order mark, a charset and capitals in its type', async () => {
    const { session } = await signUp();
    for (const type of ['application/json; charset=utf-8', 'APPLICATION/JSON', 'application/json;charset=UTF-8; x=y']) {
      const body = `\ufeff \t\r\n{ "name"\n:\t${JSON.stringify(unique('app-'))} } `;
      const answer = await session.send('POST', '/api/v1/panel/create-application', { body, headers: { 'content-type': type } });
      expect(answer.status, type).toBe(200);
    }
  });
});

describe('the name of an application', () => {
  it.each(['abcdef', '  abcdef  ', 'a'.repeat(32), '😀'.repeat(6), '😀'.repeat(32), 'ab cd ef', 'İstanbul', "'; --x"])(
    'may be %j',
    async (name) => {
      const { session } = await signUp();
      await session.post('/api/v1/panel/create-application', { name });
      expect((await session.get('/api/v1/panel/get-applications')).data).toEqual([
        expect.objectContaining({ name: name.trim() }),
      ]);
    },
  );

  it('is kept in NFC, without invisible characters', async () => {
    const { session } = await signUp();
    await session.post('/api/v1/panel/create-application', { name: '\u202ecafe\u0301\0 \u200bbar\n' });
    expect((await session.get('/api/v1/panel/get-applications')).data).toEqual([
      expect.objectContaining({ name: 'caf\u00e9 bar' }),
    ]);
  });

  it.each([
    'abcde',
    '      ',
    ' abcde ',
    'a'.repeat(33),
    '😀'.repeat(5),
    '😀'.repeat(33),
    'abc\0de',
    '\u200b'.repeat(6),
    '',
    'a'.repeat(60_000),
  ])('may not be %j', async (name) => {
    const { code } = await owner.session.post('/api/v1/panel/create-application', { name });
    expect(code).toBe('VALIDATION_ERROR');
  });
});

it('answers where the settings of a new application are', async () => {
  const { headers, data } = await owner.session.post('/api/v1/panel/create-application', { name: 'with a location' });
  expect(data).toBeUndefined();
  const { data: all } = await owner.session.get('/api/v1/panel/get-applications');
  const { id } = all.find(({ name }: { name: string }) => name === 'with a location');
  expect(headers.get('location')).toBe(`/api/v1/panel/get-application-settings?applicationId=${id}`);
  expect((await owner.session.send('GET', headers.get('location') ?? '')).data).toMatchObject({ version: '1.0' });
});

describe('license levels', () => {
  const save = (levels: unknown) =>
    owner.session.post('/api/v1/panel/create-application-license-levels', { levels } as object, { applicationId });
  const levels = async () => (await owner.session.get('/api/v1/panel/get-application-license-levels', { applicationId })).data;

  it('replace the whole set in the order given, trimmed', async () => {
    expect((await save(['b', ' a ', '\tc\n'])).status).toBe(200);
    expect(await levels()).toEqual(['b', 'a', 'c']);
    expect((await save(['a'.repeat(16), '😀'.repeat(16), 'A', 'a'])).status).toBe(200);
    expect(await levels()).toEqual(['a'.repeat(16), '😀'.repeat(16), 'A', 'a']);
  });

  it.each([
    [[]],
    [['']],
    [['  ']],
    [['a', 'a']],
    [['a', ' a ']],
    [['a'.repeat(17)]],
    [['😀'.repeat(17)]],
    [['a\0']],
    [['a', null]],
    [[1]],
    [{}],
    ['a'],
    [null],
  ])('are refused as a whole: %j', async (given) => {
    await save(['kept']);
    expect((await save(given)).code).toBe('VALIDATION_ERROR');
    expect(await levels()).toEqual(['kept']);
  });
});

describe('the version of an application', () => {
  it.each([
    ['1', '1'],
    ['  2.0.0-beta+1  ', '2.0.0-beta+1'],
    ['😀'.repeat(64), '😀'.repeat(64)],
  ])('may be %j', async (value, stored) => {
    await owner.session.patch('/api/v1/panel/update-application-settings', { field: 'version', value }, { applicationId });
    const { data } = await owner.session.get('/api/v1/panel/get-application-settings', { applicationId });
    expect(data.version).toBe(stored);
  });
});

describe('a query', () => {
  const get = (query: string) => owner.session.get('/api/v1/panel/get-application-settings', query);

  it.each(['', 'applicationid=x', 'applicationId[]=x', 'applicationId[0]=x', '__proto__[applicationId]=x', 'applicationId.x=1'])(
    'without its parameter is refused: %j',
    async (query) => {
      expect((await get(query)).code).toBe('VALIDATION_ERROR');
    },
  );

  it('with its parameter twice is refused, also when both are the same', async () => {
    for (const second of [applicationId, 'x', '']) {
      expect((await get(`applicationId=${applicationId}&applicationId=${second}`)).code).toBe('VALIDATION_ERROR');
    }
  });

  it.each([
    'applicationId=',
    'applicationId',
    'applicationId=%00',
    'applicationId=%',
    'applicationId=%zz',
    'applicationId=%ff%fe',
    'applicationId=%ed%a0%80',
    'applicationId=%F0%9F%98%80',
  ])('that names nothing is not found: %j', async (query) => {
    expect((await get(query)).code).toBe('not_found');
  });

  it('may hold what nobody asked for', async () => {
    const surplus = '__proto__=1&constructor=2&a=b&a=c&=&&&toString=x&%00=%00';
    expect((await get(`${surplus}&applicationId=${applicationId}`)).status).toBe(200);
    expect((await get(`applicationId=${applicationId}&${'a=b&'.repeat(2_000)}`)).status).toBe(200);
  });

  it('is ignored where a body names the application', async () => {
    const api = (await createKey(owner)).api;
    const answer = await api.send('DELETE', '/api/v1/panel/delete-application', { query: { applicationId }, body: { code: '' } });
    expect(answer.code).toBe('VALIDATION_ERROR');
  });
});

describe('a route without a body', () => {
  it('takes none or an empty object, and refuses what nobody expects', async () => {
    const { session } = await signUp();
    const path = '/api/v1/auth/sign-out';
    for (const body of [{ anything: 1 }, '[]', '[1]', 'null', '1', '{', '{"__proto__":1}']) {
      expect((await session.post(path, body)).code, JSON.stringify(body)).toBe('VALIDATION_ERROR');
    }
    const typed = (type: string, body: string) => session.send('POST', path, { body, headers: { 'content-type': type } });
    expect((await typed('text/plain', 'x')).status).toBe(415);
    expect((await typed('application/json', 'x'.repeat(70_000))).status).toBe(413);
    expect((await session.post(path, {})).status).toBe(200);
    expect((await (await signUp()).session.post(path)).status).toBe(200);
  });
});

describe('the fields of a new account', () => {
  const signUpWith = (change: object) =>
    sharedApi().post('/api/v1/auth/sign-up', {
      username: unique('u'),
      email: `${unique('u')}@example.com`,
      password: 'a long passphrase',
      ...change,
    });

  it.each([
    { username: 'ab' },
    { username: 'a'.repeat(33) },
    { username: 'with space' },
    { username: 'ünïcode' },
    { username: 'abc\n' },
    { username: ' abc ' },
    { username: "abc'--" },
    { email: 'nobody' },
    { email: 'nobody@' },
    { email: '@example.com' },
    { email: 'a@b@c.de' },
    { email: 'a b@example.com' },
    { email: 'a@example.com\n' },
    { email: 'a@exämple.com' },
    { email: `${'a'.repeat(250)}@example.com` },
    { email: 'a\0@example.com' },
    { password: 'a'.repeat(9) },
    { password: 'a'.repeat(129) },
    { password: '😀'.repeat(9) },
    { password: 'with a NUL \0 in it' },
  ])('are refused: %j', async (change) => {
    expect((await signUpWith(change)).code).toBe('VALIDATION_ERROR');
  });

  it.each([
    { username: unique('A_b-').slice(0, 32) },
    { password: '😀'.repeat(128) },
    { password: '          ' },
    { email: `${unique('a.b+c')}@sub.example.co` },
  ])('are taken: %j', async (change) => {
    expect((await signUpWith(change)).status).toBe(200);
  });
});
