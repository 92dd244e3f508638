import { SCOPES } from '@latchkey/contract/scopes';
import { eventually } from '@latchkey/testkit/eventually';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import type { Answer, Api } from '../client/api.ts';
import { createApplication, createKey, type Key, type Owner, readState, sharedApi, signUp } from '../client/caller.ts';
import { outcome } from '../client/files.ts';
import { forgeKey, mistype } from '../client/key-text.ts';
import { readOpenApiDocument } from '../client/openapi-document.ts';
import { sendRaw } from '../client/raw-request.ts';
import { KEY_ROUTES, nameOf, type RouteCase, SESSION_ROUTES } from '../client/routes.ts';
import { SERVICE_CREDENTIAL } from '../instance/instance.ts';

/** Every route with every credential that it rejects (specification 5.1). */
let owner: Owner;
let key: Key;
let revoked: Key;
let expired: string;
let ended: Owner;
let applicationId: string;
let runtimeKeys: Readonly<Record<'socketKey' | 'httpKey', string>>;
let state: string;
const unscoped: Record<string, Api> = {};
beforeAll(async () => {
  [owner, ended] = await Promise.all([signUp(), signUp()]);
  key = await createKey(owner);
  applicationId = await createApplication(key.api);
  [{ applicationApiKeys: runtimeKeys }] = (await key.api.get('/api/v1/panel/get-applications')).data;
  await ended.session.post('/api/v1/auth/sign-out');
  revoked = await createKey(owner);
  await owner.session.post(`/api/v1/panel/api-keys/${revoked.id}/revoke`);
  for (const scope of SCOPES) unscoped[scope] = (await createKey(owner, { scopes: SCOPES.filter((one) => one !== scope) })).api;
  const short = await createKey(owner, { expiresAt: new Date(Date.now() + 1_500).toISOString() });
  await eventually(async () => !(await short.api.get('/api/v1/panel/get-applications')).success);
  expired = short.text;
  state = await readState(owner, { keys: false });
});

const send = (api: Api, route: RouteCase, headers: Record<string, string> = {}): Promise<Answer> => {
  const request = route.request(applicationId);
  return api.send(route.method, route.path, { ...request, headers: { ...request.headers, ...headers } });
};
const cases = (routes: readonly RouteCase[]) => routes.map((route) => [nameOf(route), route] as const);

/** Credentials of other kinds, mistyped and made-up ones. The gateway's tests hold the parsing. */
function invalidTexts(): string[] {
  const { text, record } = key;
  const other = [runtimeKeys.socketKey, runtimeKeys.httpKey, owner.csrfToken, SERVICE_CREDENTIAL];
  const forged = [mistype(text), forgeKey(), forgeKey(record.publicId), forgeKey(revoked.record.publicId), mistype(expired)];
  return ['', 'abc', 'a'.repeat(4_000), text.toUpperCase(), text.slice(0, -1), `${text}0`, ...other, ...forged];
}

async function expectSessionInvalid(route: RouteCase, cookies = [ended.cookie]): Promise<void> {
  for (const cookie of cookies) {
    const answer = await send(sharedApi(), route, { cookie, 'x-csrf-token': owner.csrfToken });
    const message = 'The session is not valid or has expired. Sign in again';
    expect([outcome(answer), answer.message], cookie).toEqual(['401 unauth', message]);
  }
}

it('rejects every invalid key and session', async () => {
  const [route] = KEY_ROUTES as [RouteCase];
  const token = owner.cookie.slice('session='.length);
  for (const text of [...invalidTexts(), token]) {
    const authorization = `Bearer ${text}`;
    expect(outcome(await send(sharedApi(), route, { authorization })), authorization).toBe('401 api_key_invalid');
  }
  const texts = [...invalidTexts(), key.text, token.toUpperCase(), token.slice(0, -1), `${token}a`];
  await expectSessionInvalid(route, [ended.cookie, ...texts.map((text) => `session=${text}`)]);
});

describe.each(cases(KEY_ROUTES))('%s', (_name, route) => {
  it('rejects a request without a valid key or session', async () => {
    expect(outcome(await send(sharedApi(), route))).toBe('401 api_key_invalid');
    await expectSessionInvalid(route);
  });

  it('rejects two Authorization headers, even with one valid key', async () => {
    const line = `Authorization: Bearer ${key.text}\r\n`;
    const head = `${route.method} ${route.path} HTTP/1.1\r\nHost: x\r\n${line}${line}\r\n`;
    const [answer] = await sendRaw(inject('latchkeyInstance').port, head);
    expect([answer?.status, JSON.parse(answer?.text ?? '').code]).toEqual([401, 'api_key_invalid']);
  });

  it('reports a revoked key, an expired one and a missing scope, and ignores a cookie sent with a key', async () => {
    const { cookie, csrfToken } = owner;
    const session = { cookie, 'x-csrf-token': csrfToken };
    expect(outcome(await send(revoked.api, route, session))).toBe('401 api_key_revoked');
    expect(outcome(await send(sharedApi(), route, { authorization: `Bearer ${expired}` }))).toBe('401 api_key_expired');
    expect(outcome(await send(unscoped[route.scope ?? ''] as Api, route))).toBe('403 insufficient_scope');
    for (const authorization of ['', `Bearer ${forgeKey()}`])
      expect(outcome(await send(sharedApi(), route, { ...session, authorization }))).toBe('401 api_key_invalid');
  });
});

describe.each(cases(SESSION_ROUTES))('%s', (_name, route) => {
  it('rejects a request without a valid session', async () => {
    expect(outcome(await send(sharedApi(), route))).toBe('401 unauth');
    await expectSessionInvalid(route);
  });

  it('answers session_required to a valid key alone, also with a valid session', async () => {
    const session = { cookie: owner.cookie, 'x-csrf-token': owner.csrfToken };
    for (const beside of [{}, session] as Array<Record<string, string>>) {
      expect(outcome(await send(key.api, route, beside))).toBe('403 session_required');
      expect(outcome(await send(revoked.api, route, beside))).toBe('401 api_key_revoked');
      expect(outcome(await send(sharedApi(), route, { ...beside, authorization: `Bearer ${expired}` }))).toBe(
        '401 api_key_expired',
      );
      const forged = { ...beside, authorization: `Bearer ${forgeKey()}` };
      expect(outcome(await send(sharedApi(), route, forged))).toBe('401 api_key_invalid');
    }
  });
});

describe.each(cases([...KEY_ROUTES, ...SESSION_ROUTES].filter(({ method }) => method !== 'GET')))('%s', (_name, route) => {
  it('rejects a session without its own CSRF token, and from another origin', async () => {
    const as = async (headers: Record<string, string>) => outcome(await send(owner.session.with(headers), route));
    for (const token of ['', ended.csrfToken]) expect(await as({ 'x-csrf-token': token }), token).toBe('403 csrf_invalid');
    for (const origin of ['null', 'https://evil.example']) expect(await as({ origin }), origin).toBe('403 csrf_invalid');
  });
});

it('none of these requests changed anything', async () => {
  expect(await readState(owner, { keys: false })).toBe(state);
  const { account } = (await owner.session.get('/api/v1/auth/session')).data;
  expect(account).toMatchObject({ avatarUrl: null, twoFactorEnabled: false });
});

it('every route of the OpenAPI document needs a credential, but those that begin a session, exchange a token or reset a password', async () => {
  const { paths } = await readOpenApiDocument(sharedApi().baseUrl);
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
  expect(open.filter((name) => !/\/(?:auth\/oidc|updates)\//.test(name))).toEqual([
    'POST /api/v1/auth/token',
    'POST /api/v1/auth/sign-up',
    'POST /api/v1/auth/sign-in',
    'GET /api/v1/auth/methods',
    'POST /api/v1/auth/password/forgot',
    'POST /api/v1/auth/password/reset',
    'OPTIONS /api/v1/panel/uploads',
  ]);
});

it('a session is good for every key route, with every scope and every application', async () => {
  const other = await signUp();
  const id = await createApplication(other.session);
  for (const route of KEY_ROUTES) {
    const { path = route.path, ...request } = (await route.prepare?.(other.session, id)) ?? { ...route.request(id) };
    expect(outcome(await other.session.send(route.method, path, request)), nameOf(route)).toMatch(/^20[014]$/);
  }
});
