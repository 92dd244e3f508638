import { eventually } from '@latchkey/testkit/eventually';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import type { Answer, Api } from '../testing/api.ts';
import { createApplication, createKey, type Key, type Owner, readState, SCOPES, sharedApi, signUp } from '../testing/caller.ts';
import { readDocument } from '../testing/document.ts';
import { SERVICE_CREDENTIAL } from '../testing/instance.ts';
import { forgeKey, mistype } from '../testing/key-text.ts';
import { sendRaw } from '../testing/raw-request.ts';
import { KEY_ROUTES, nameOf, type RouteCase, SESSION_ROUTES } from '../testing/routes.ts';

let owner: Owner;
let key: Key;
let applicationId: string;
let runtimeKeys: Readonly<Record<'socketKey' | 'httpKey', string>>;
let ended: Owner;
let state: string;
const expired: { text: string } = { text: '' };
let revoked: Key;

beforeAll(async () => {
  owner = await signUp();
  key = await createKey(owner);
  applicationId = await createApplication(key.api);
  const [application] = (await key.api.get('/api/v1/panel/get-applications')).data;
  runtimeKeys = application.applicationApiKeys;
  ended = await signUp();
  await ended.session.post('/api/v1/auth/sign-out');
  revoked = await createKey(owner);
  await owner.session.post(`/api/v1/panel/api-keys/${revoked.id}/revoke`);
  const short = await createKey(owner, { expiresAt: new Date(Date.now() + 1_500).toISOString() });
  await eventually(async () => !(await short.api.get('/api/v1/panel/get-applications')).success);
  expired.text = short.text;
  state = await readState(owner, { keys: false });
});

const send = (api: Api, route: RouteCase, headers: Record<string, string> = {}): Promise<Answer> => {
  const request = route.request(applicationId);
  return api.send(route.method, route.path, { ...request, headers: { ...request.headers, ...headers } });
};
const outcome = ({ status, code }: Answer) => `${status} ${code}`;

const SESSION_INVALID = 'The session is not valid or has expired. Sign in again';

const tokenOf = ({ cookie }: Owner) => cookie.slice('session='.length);

/** `Cookie` values that are no valid session, by what is wrong with them. */
const invalidCookies = (): Record<string, string> => ({
  'no token': 'session=',
  'a text that is no token': 'session=abc',
  'a made-up token': `session=${'a'.repeat(43)}`,
  'a very long token': `session=${'a'.repeat(4_000)}`,
  'a session that was signed out of': ended.cookie,
  'a token in another case': `session=${tokenOf(owner).toUpperCase()}`,
  'a token cut short': owner.cookie.slice(0, -1),
  'a token that is too long': `${owner.cookie}a`,
  'a CSRF token': `session=${owner.csrfToken}`,
  'a management key': `session=${key.text}`,
  'a runtime key': `session=${runtimeKeys.socketKey}`,
});

/** `Authorization` values that are no valid key, by what is wrong with them. */
const invalidValues = (): Record<string, string> => ({
  'an empty header': '',
  'no scheme': key.text,
  'another scheme': `Basic ${key.text}`,
  'no key': 'Bearer',
  'a key with something behind it': `Bearer ${key.text} x`,
  'two keys': `Bearer ${key.text}, Bearer ${key.text}`,
  'a text that is no key': 'Bearer abc',
  'a socket key': `Bearer ${runtimeKeys.socketKey}`,
  'an HTTP key': `Bearer ${runtimeKeys.httpKey}`,
  "a session's token": `Bearer ${tokenOf(owner)}`,
  "a session's cookie": `Bearer ${owner.cookie}`,
  "a session's CSRF token": `Bearer ${owner.csrfToken}`,
  'an email and a password': `Basic ${btoa(`${owner.email}:${owner.password}`)}`,
  'the credential of services': `Bearer ${SERVICE_CREDENTIAL}`,
  'a key of another prefix': `Bearer ${key.text.replace('lk_mgmt_', 'lk_test_')}`,
  'a key in another case': `Bearer ${key.text.toUpperCase()}`,
  'a key cut short': `Bearer ${key.text.slice(0, -1)}`,
  'a key that is too long': `Bearer ${key.text}0`,
  'a mistyped key': `Bearer ${mistype(key.text)}`,
  'a made-up key': `Bearer ${forgeKey()}`,
  'a made-up secret for a real public id': `Bearer ${forgeKey(key.record.publicId)}`,
  'a made-up secret for a revoked public id': `Bearer ${forgeKey(revoked.record.publicId)}`,
  'a very long key': `Bearer ${'a'.repeat(8_000)}`,
});

describe.each(KEY_ROUTES.map((route) => [nameOf(route), route] as const))('%s', (_name, route) => {
  it('refuses a request without a credential', async () => {
    expect(outcome(await send(sharedApi(), route))).toBe('401 api_key_invalid');
  });

  it('refuses whatever is no valid key', async () => {
    for (const [what, authorization] of Object.entries(invalidValues())) {
      expect(outcome(await send(sharedApi(), route, { authorization })), what).toBe('401 api_key_invalid');
    }
  });

  it('refuses two Authorization headers, even with one valid key', async () => {
    const { port } = inject('latchkeyInstance');
    const line = `Authorization: Bearer ${key.text}\r\n`;
    const [answer] = await sendRaw(port, `${route.method} ${route.path} HTTP/1.1\r\nHost: x\r\n${line}${line}\r\n`);
    expect([answer?.status, JSON.parse(answer?.text ?? '').code]).toEqual([401, 'api_key_invalid']);
  });

  it('says of a revoked and of an expired key what it is, but only to who has its secret', async () => {
    expect(outcome(await send(revoked.api, route))).toBe('401 api_key_revoked');
    expect(outcome(await send(sharedApi(), route, { authorization: `Bearer ${expired.text}` }))).toBe('401 api_key_expired');
    expect(outcome(await send(sharedApi(), route, { authorization: `Bearer ${mistype(expired.text)}` }))).toBe(
      '401 api_key_invalid',
    );
  });

  it('refuses a key with every scope but its own', async () => {
    const { api } = await createKey(owner, { scopes: SCOPES.filter((scope) => scope !== route.scope) });
    expect(outcome(await send(api, route))).toBe('403 insufficient_scope');
  });

  it('ignores a cookie beside an Authorization header', async () => {
    const { cookie } = owner;
    expect(outcome(await send(sharedApi(), route, { authorization: '', cookie }))).toBe('401 api_key_invalid');
    expect(outcome(await send(sharedApi(), route, { authorization: `Bearer ${forgeKey()}`, cookie }))).toBe(
      '401 api_key_invalid',
    );
    expect(outcome(await send(revoked.api, route, { cookie, 'x-csrf-token': owner.csrfToken }))).toBe('401 api_key_revoked');
  });

  it('refuses a session that is none', async () => {
    for (const [what, cookie] of Object.entries(invalidCookies())) {
      const headers = { cookie, 'x-csrf-token': owner.csrfToken };
      const answer = await send(sharedApi(), route, headers);
      expect([outcome(answer), answer.message], what).toEqual(['401 unauth', SESSION_INVALID]);
    }
  });

  it('changed nothing by all this', async () => {
    expect(await readState(owner, { keys: false })).toBe(state);
  });
});

describe.each(SESSION_ROUTES.map((route) => [nameOf(route), route] as const))('%s', (_name, route) => {
  it('refuses a request without a session', async () => {
    expect(outcome(await send(sharedApi(), route))).toBe('401 unauth');
    expect(outcome(await send(sharedApi(), route, { 'x-csrf-token': owner.csrfToken }))).toBe('401 unauth');
    for (const [what, cookie] of Object.entries(invalidCookies())) {
      const headers = { cookie, 'x-csrf-token': owner.csrfToken };
      const answer = await send(sharedApi(), route, headers);
      expect([outcome(answer), answer.message], what).toEqual(['401 unauth', SESSION_INVALID]);
    }
  });

  it('refuses a valid key, which it tells that a session is needed, also beside a valid cookie', async () => {
    expect(outcome(await send(key.api, route))).toBe('403 session_required');
    const { cookie, csrfToken } = owner;
    expect(outcome(await send(key.api, route, { cookie, 'x-csrf-token': csrfToken }))).toBe('403 session_required');
  });

  it('tells whoever has no valid key nothing of that, also beside a valid session', async () => {
    const session = { cookie: owner.cookie, 'x-csrf-token': owner.csrfToken };
    for (const [what, authorization] of Object.entries(invalidValues())) {
      for (const beside of [{}, session]) {
        const answer = await send(sharedApi(), route, { ...beside, authorization });
        expect(outcome(answer), what).toBe('401 api_key_invalid');
      }
    }
    expect(outcome(await send(revoked.api, route, session))).toBe('401 api_key_revoked');
    const authorization = `Bearer ${expired.text}`;
    expect(outcome(await send(sharedApi(), route, { ...session, authorization }))).toBe('401 api_key_expired');
  });

  it('changed nothing by all this', async () => {
    expect(await readState(owner, { keys: false })).toBe(state);
    const { account } = (await owner.session.get('/api/v1/auth/session')).data;
    expect(account).toMatchObject({ avatarUrl: null, twoFactorEnabled: false });
  });
});

describe('the OpenAPI document', () => {
  it('names no route that lets anybody in without a credential, but those that a session begins with', async () => {
    const { paths } = await readDocument(sharedApi().baseUrl);
    const open: string[] = [];
    for (const [path, operations] of Object.entries(paths)) {
      for (const [method, { security }] of Object.entries(operations)) {
        const kinds = (security as ReadonlyArray<object>).flatMap((one) => Object.keys(one));
        const name = `${method.toUpperCase()} ${path}`;
        if (kinds.length === 0) {
          open.push(name);
          continue;
        }
        const answer = await sharedApi().send(method.toUpperCase(), path.replace('{id}', applicationId));
        const takesKeys = kinds.includes('managementKey');
        expect(outcome(answer), name).toBe(takesKeys ? '401 api_key_invalid' : '401 unauth');
        expect(answer.message, name).toMatch(takesKeys ? /^No API key and no session\. / : /^No session\. /);
      }
    }
    expect(open.filter((name) => !name.includes('/auth/oidc/'))).toEqual([
      'POST /api/v1/auth/sign-up',
      'POST /api/v1/auth/sign-in',
    ]);
  });
});

describe('a session', () => {
  it('is good for every key route, with every scope and every application', async () => {
    const other = await signUp();
    const id = await createApplication(other.session);
    for (const route of KEY_ROUTES) {
      const request = (await route.prepare?.(other.session, id)) ?? route.request(id);
      const answer = await other.session.send(route.method, route.path, request);
      expect(outcome(answer), nameOf(route)).toBe('200 ');
    }
  });
});
