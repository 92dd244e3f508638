import { beforeAll, describe, expect, it } from 'vitest';
import type { Body } from '../client/api.ts';
import { createApplication, createKey, type Owner, readState, sharedApi, signUp, unique } from '../client/caller.ts';
import { outcome } from '../client/files.ts';
import { type ObjectSchema, type OpenApiDocument, readOpenApiDocument } from '../client/openapi-document.ts';
import { KEY_ROUTES, nameOf, type RouteCase, SESSION_ROUTES } from '../client/routes.ts';

const CREATE = '/api/v1/panel/create-application';
const SETTINGS = '/api/v1/panel/get-application-settings';
const LIMIT = 64 * 1024;

let owner: Owner;
let applicationId: string;
let state: string;
let paths: OpenApiDocument['paths'];
beforeAll(async () => {
  ({ paths } = await readOpenApiDocument(sharedApi().baseUrl));
  owner = await signUp();
  applicationId = await createApplication(owner.session);
  await createKey(owner);
  state = await readState(owner);
});

const auth = (name: string, body: () => object): RouteCase => ({
  method: 'POST',
  path: `/api/v1/auth/${name}`,
  request: () => ({ body: body() }),
});
const password = 'a long passphrase';
const SIGN_UP = auth('sign-up', () => ({ username: unique('u'), email: `${unique('u')}@example.com`, password }));
const SIGN_IN = auth('sign-in', () => ({ email: `${unique('unknown')}@example.com`, password }));

function takesJson({ request }: RouteCase): boolean {
  const { body } = request('');
  return body !== undefined && !(body instanceof Uint8Array);
}

/** Bodies that no route takes. Texts are sent unchanged. */
const BAD_BODIES: readonly Body[] = [
  ...[null, '', '  \n', '{"name":', '{"name":"abcdef",}', "{'name':'abcdef'}", '{}{}', 'name=abcdef&applicationId=1', '\0\0'],
  ...['1', '1e999', '"abcdef"', 'null', 'true', '[]', '[{}]', '{}', String.raw`{"name":"abcdef\ud800"}`],
  '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>',
  new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]),
  new Uint8Array(Buffer.from('{"name":"abcdef"}', 'utf16le')),
  `${'{"a":'.repeat(100)}1${'}'.repeat(100)}`,
  `${'['.repeat(30_000)}${']'.repeat(30_000)}`,
];

/** Values that no property takes. */
const BAD_VALUES: readonly unknown[] = [
  ...[{ length: { toString: 1 } }, null, 0, [], -1, 1.5, 1e308, {}, [[]], { toString: 1 }, [null], [{}], ''],
];
/** Properties that may be any text, and so an empty one. */
const ANY_TEXT = ['applicationId', 'fileId', 'code', 'value', 'email', 'password'];
const UNKNOWN_NAMES = [
  ...'surplus|constructor|prototype|toString|hasOwnProperty|__defineGetter__||Name'.split('|'),
  'a'.repeat(1_000),
];
const BAD_TYPES = [
  ...'text/plain|text/json|application/x-www-form-urlencoded|multipart/form-data; boundary=x'.split('|'),
  'application/octet-stream',
  ...'application/xml|application/json-patch+json|application/jsonp|application/json, text/plain|json|*/*'.split('|'),
  '__proto__',
  ' ',
];

/** The first route gets all bodies, names and types, and the others some of them. */
const someOf = <T>(all: readonly T[], index: number, count: number) => (index === 0 ? all : all.slice(0, count));
const routes = [...KEY_ROUTES, ...SESSION_ROUTES, SIGN_UP, SIGN_IN].filter(takesJson);

describe.each(routes.map((route, index) => [nameOf(route), route, index] as const))('%s', (_name, route, index) => {
  const refuse = async (body: Body, what = '', status = 400, headers: Record<string, string> = {}) => {
    const { query } = route.request(applicationId);
    const answer = await owner.session.send(route.method, route.path, { ...(query && { query }), body, headers });
    expect([outcome(answer), answer.message], what || String(body).slice(0, 100)).toEqual([
      `${status} VALIDATION_ERROR`,
      'Request does not match the schema',
    ]);
  };
  const documented = (): readonly ObjectSchema[] => {
    const [method = '', path = ''] = nameOf(route).replace(':id', '{id}').split(' ');
    const schema = paths[path]?.[method.toLowerCase()]?.requestBody?.content['application/json']?.schema ?? {};
    return schema.oneOf ?? schema.anyOf ?? [schema];
  };
  const valid = () => route.request(applicationId).body as Record<string, unknown>;

  it('rejects bodies other than a JSON object', async () => {
    for (const body of someOf(BAD_BODIES, index, 4)) await refuse(body);
  });

  it('rejects each property that is missing or of another type', async () => {
    const schemas = documented();
    for (const name of Object.keys(valid())) {
      expect(schemas.some(({ properties = {} }) => name in properties)).toBe(true);
      const isFilled = schemas.some(({ properties = {} }) => properties[name]?.minLength);
      const { [name]: _left, ...rest } = valid();
      if (schemas.every(({ required = [] }) => required.includes(name))) await refuse(rest, `no ${name}`);
      const isNumber = typeof valid()[name] === 'number';
      for (const value of someOf(BAD_VALUES, index, isNumber ? 7 : 4)) {
        if (value === '' && !isFilled && ANY_TEXT.includes(name)) continue;
        if (value === 0 && name === 'rolloutPercent') continue;
        await refuse({ ...valid(), [name]: value }, `${name} = ${JSON.stringify(value)}`);
      }
    }
  });

  it('rejects unknown and duplicate properties', async () => {
    for (const name of someOf(UNKNOWN_NAMES, index, 2)) await refuse({ ...valid(), [name]: 'x' }, name);
    const text = JSON.stringify(valid());
    for (const name of ['__proto__', String.raw`\u005f_proto__`])
      await refuse(text.replace('{', `{"${name}":{"isAdmin":true},`), name);
    const [name = ''] = Object.keys(valid());
    await refuse(text.replace('{', `{${JSON.stringify(name)}:${JSON.stringify(valid()[name])},`), 'twice');
    const escaped = `\\u${name.charCodeAt(0).toString(16).padStart(4, '0')}${name.slice(1)}`;
    await refuse(text.replace('{', `{"${escaped}":1,`), 'twice, once escaped');
  });

  it('rejects another or a missing content type, and more than 64 KiB', async () => {
    const text = JSON.stringify(valid());
    for (const type of someOf(BAD_TYPES, index, 1)) await refuse(text, type, 415, { 'content-type': type });
    await refuse(new Uint8Array(Buffer.from(text)), 'none', 415, { 'content-type': '' });
    await refuse(text.padEnd(LIMIT + 1, ' '), 'one byte more', 413);
    await refuse('['.repeat(LIMIT), 'exactly 64 KiB of invalid JSON');
  });
});

it('none of these requests changed anything', async () => {
  expect(await readState(owner)).toBe(state);
});

it('a body of exactly 64 KiB may have any white space, a byte order mark, a charset and capitals in its type', async () => {
  const { session } = await signUp();
  expect(outcome(await session.post(CREATE, JSON.stringify({ name: unique() }).padEnd(LIMIT, ' ')))).toBe('200');
  for (const type of ['application/json; charset=utf-8', 'APPLICATION/JSON', 'application/json;charset=UTF-8; x=y']) {
    const body = `\ufeff \t\r\n{ "name"\n:\t${JSON.stringify(unique())} } `;
    expect(outcome(await session.send('POST', CREATE, { body, headers: { 'content-type': type } })), type).toBe('200');
  }
});

it('a route without a body accepts an absent body or an empty object', async () => {
  const { session } = await signUp();
  const path = '/api/v1/auth/sign-out';
  for (const body of [{ anything: 1 }, '[]', '[1]', 'null', '1', '{', '{"__proto__":1}'])
    expect(outcome(await session.post(path, body)), JSON.stringify(body)).toBe('400 VALIDATION_ERROR');
  const typed = (type: string, body: string) => session.send('POST', path, { body, headers: { 'content-type': type } });
  expect((await typed('text/plain', 'x')).status).toBe(415);
  expect((await typed('application/json', 'x'.repeat(70_000))).status).toBe(413);
  expect((await session.post(path, {})).status).toBe(200);
  expect((await (await signUp()).session.post(path)).status).toBe(200);
});

describe('a query', () => {
  const get = (query: string) => owner.session.get(SETTINGS, query).then(outcome);

  it('gives its parameter once, and may hold others', async () => {
    const missing = '|applicationid=x|applicationId[]=x|applicationId[0]=x|__proto__[applicationId]=x|applicationId.x=1'.split(
      '|',
    );
    const twice = [applicationId, 'x', ''].map((second) => `applicationId=${applicationId}&applicationId=${second}`);
    for (const query of [...missing, ...twice]) expect(await get(query), query).toBe('400 VALIDATION_ERROR');
    for (const id of ['=', '', '=%00', '=%', '=%zz', '=%ff%fe', '=%ed%a0%80', '=%F0%9F%98%80'])
      expect(await get(`applicationId${id}`), id).toBe('404 not_found');
    const surplus = '__proto__=1&constructor=2&a=b&a=c&=&&&toString=x&%00=%00';
    expect(await get(`${surplus}&applicationId=${applicationId}`)).toBe('200');
    expect(await get(`applicationId=${applicationId}&${'a=b&'.repeat(2_000)}`)).toBe('200');
  });

  it('is ignored where a body names the application', async () => {
    const { api } = await createKey(owner);
    const answer = await api.send('DELETE', '/api/v1/panel/delete-application', { query: { applicationId }, body: { code: '' } });
    expect(outcome(answer)).toBe('400 VALIDATION_ERROR');
  });
});
