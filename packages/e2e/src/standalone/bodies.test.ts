import { beforeAll, describe, expect, it } from 'vitest';
import type { Body } from '../client/api.ts';
import { createApplication, createKey, MARKER, type Owner, readState, sharedApi, signUp, unique } from '../client/caller.ts';
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

/** Bodies that no route takes: no JSON, or no object. Each form of JSON is tested at its parser. */
const BAD_BODIES: readonly Body[] = [
  null,
  '',
  MARKER,
  '{"name":',
  '[]',
  new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]),
];

/** Values that no property takes. */
const BAD_VALUES: readonly unknown[] = [{ [MARKER]: [MARKER] }, [[MARKER]], null, 0, [], -1, 1.5];
const BAD_TYPES = ['text/plain', 'application/json, text/plain', '__proto__'];

const routes = [...KEY_ROUTES, ...SESSION_ROUTES, SIGN_UP, SIGN_IN].filter(takesJson);

describe.each(routes.map((route) => [nameOf(route), route] as const))('%s', (_name, route) => {
  const refuse = async (body: Body, what = '', status = 400, headers: Record<string, string> = {}) => {
    const { query } = route.request(applicationId);
    const answer = await owner.session.send(route.method, route.path, { ...(query && { query }), body, headers });
    expect([outcome(answer), answer.message], what || String(body).slice(0, 100)).toEqual([
      `${status} VALIDATION_ERROR`,
      'Request does not match the schema',
    ]);
    expect(answer.text).not.toMatch(/zq.?.?Marker/);
  };
  const documented = (): readonly ObjectSchema[] => {
    const [method = '', path = ''] = nameOf(route).replace(':id', '{id}').split(' ');
    const schema = paths[path]?.[method.toLowerCase()]?.requestBody?.content['application/json']?.schema ?? {};
    return schema.oneOf ?? schema.anyOf ?? [schema];
  };
  const valid = () => route.request(applicationId).body as Record<string, unknown>;

  it('rejects bodies other than a JSON object', async () => {
    for (const body of BAD_BODIES) await refuse(body);
  });

  it('rejects each property that is missing or of another type', async () => {
    const schemas = documented();
    for (const name of Object.keys(valid())) {
      expect(schemas.some(({ properties = {} }) => name in properties)).toBe(true);
      const { [name]: _left, ...rest } = valid();
      if (schemas.every(({ required = [] }) => required.includes(name))) await refuse(rest, `no ${name}`);
      for (const value of BAD_VALUES) {
        if (value === 0 && name === 'rolloutPercent') continue;
        await refuse({ ...valid(), [name]: value }, `${name} = ${JSON.stringify(value)}`);
      }
    }
  });

  it('rejects unknown and duplicate properties', async () => {
    for (const name of [MARKER, 'constructor', '']) await refuse({ ...valid(), [name]: 'x' }, name);
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
    for (const type of BAD_TYPES) await refuse(text, type, 415, { 'content-type': type });
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

it('a query has its parameter once, and may have others, which a route without them ignores', async () => {
  const get = (query: string) => owner.session.get(SETTINGS, query).then(outcome);
  const missing = ['', 'applicationid=x', 'applicationId[]=x', '__proto__[applicationId]=x'];
  const twice = [applicationId, ''].map((second) => `applicationId=${applicationId}&applicationId=${second}`);
  for (const query of [...missing, ...twice]) expect(await get(query), query).toBe('400 VALIDATION_ERROR');
  for (const id of ['', '%00', '%', '%zz', '%ff%fe', '%ed%a0%80'])
    expect(await get(`applicationId=${id}`), id).toBe('404 not_found');
  const surplus = `__proto__=1&constructor=2&a=b&a=c&=&&&%00=%00&${'a=b&'.repeat(2_000)}`;
  expect(await get(`${surplus}&applicationId=${applicationId}`)).toBe('200');
  const deletion = { query: { applicationId }, body: { code: '' } };
  expect(outcome(await owner.session.send('DELETE', '/api/v1/panel/delete-application', deletion))).toBe('400 VALIDATION_ERROR');
});
