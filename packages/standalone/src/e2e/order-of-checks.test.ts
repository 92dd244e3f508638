import { beforeAll, describe, expect, it } from 'vitest';
import type { Answer, Api, SendOptions } from '../testing/api.ts';
import { createApplication, createKey, type Owner, readState, SCOPES, sharedApi, signUp } from '../testing/caller.ts';
import { forgeKey } from '../testing/key-text.ts';
import { APPLICATION_ROUTES, nameOf, type RouteCase } from '../testing/routes.ts';

/** Decisions 2: authentication → scope → schema → does the application exist → is the key restricted from it → the action's own checks. */
let owner: Owner;
let open: string;
let closed: string;
let restricted: Api;
let unscoped: Api;
const UNKNOWN = '01900000-0000-7000-8000-00000000dead';

beforeAll(async () => {
  owner = await signUp();
  [open, closed] = [await createApplication(owner.session), await createApplication(owner.session)];
  restricted = (await createKey(owner, { applicationIds: [open] })).api;
  unscoped = (await createKey(owner, { scopes: ['account:read'] })).api;
});

const outcome = ({ status, code }: Answer) => `${status} ${code}`;

/** The route's valid request with something that its schema refuses. */
function malformed(route: RouteCase, applicationId: string): SendOptions {
  const { query, body, headers } = route.request(applicationId);
  if (body && !(body instanceof Uint8Array)) return { ...(query && { query }), body: { ...(body as object), surplus: 1 } };
  const twice = `${new URLSearchParams(query)}&applicationId=${applicationId}`;
  return { query: twice, ...(body && { body }), ...(headers && { headers }) };
}

const send = (api: Api, { method, path }: RouteCase, options: SendOptions) => api.send(method, path, options);

describe.each(APPLICATION_ROUTES.map((route) => [nameOf(route), route] as const))('%s refuses', (_name, route) => {
  it('a wrong key before anything else', async () => {
    const forged = sharedApi().with({ authorization: `Bearer ${forgeKey()}` });
    expect(outcome(await send(forged, route, malformed(route, UNKNOWN)))).toBe('401 api_key_invalid');
  });

  it('a missing scope before a malformed request', async () => {
    expect(outcome(await send(unscoped, route, malformed(route, UNKNOWN)))).toBe('403 insufficient_scope');
    expect(outcome(await send(unscoped, route, {}))).toBe('403 insufficient_scope');
  });

  it('a malformed request before an unknown application', async () => {
    expect(outcome(await send(restricted, route, malformed(route, UNKNOWN)))).toBe('400 VALIDATION_ERROR');
  });

  it('a malformed request before a restricted key', async () => {
    expect(outcome(await send(restricted, route, malformed(route, closed)))).toBe('400 VALIDATION_ERROR');
  });

  it('an unknown application before a restricted key', async () => {
    expect(outcome(await send(restricted, route, route.request(UNKNOWN)))).toBe('404 not_found');
    expect(outcome(await send(restricted, route, route.request(closed)))).toBe('403 application_forbidden');
  });
});

describe('update-application-settings refuses', () => {
  const PATH = '/api/v1/panel/update-application-settings';
  const wrongValue = { field: 'status', value: 'broken' };

  it('an unknown application before a value that does not fit', async () => {
    expect(outcome(await owner.session.patch(PATH, wrongValue, { applicationId: UNKNOWN }))).toBe('404 not_found');
  });

  it('a restricted key before a value that does not fit', async () => {
    expect(outcome(await restricted.patch(PATH, wrongValue, { applicationId: closed }))).toBe('403 application_forbidden');
    expect(outcome(await restricted.patch(PATH, wrongValue, { applicationId: open }))).toBe('400 bad_request');
  });

  it('an unknown field before an unknown application', async () => {
    const body = { field: 'color', value: 'x' };
    expect(outcome(await owner.session.patch(PATH, body, { applicationId: UNKNOWN }))).toBe('400 VALIDATION_ERROR');
  });

  it.each([
    ['status', true],
    ['status', 'ONLINE'],
    ['status', ''],
    ['version', false],
    ['version', ''],
    ['version', '   '],
    ['version', 'x'.repeat(65)],
    ['version', 'a\nb'],
    ['version', 'a\0b'],
    ['applicationLicenseRequiresClientId', 'true'],
    ['applicationUserRequiresClientId', ''],
    ['applicationUserRequiresLicense', 'online'],
  ])('%s = %j as bad for the field, and changes nothing', async (field, value) => {
    const before = await readState(owner, { keys: false });
    expect(outcome(await owner.session.patch(PATH, { field, value }, { applicationId: open }))).toBe('400 bad_request');
    expect(await readState(owner, { keys: false })).toBe(before);
  });
});

describe('create-application refuses', () => {
  it('a bad name before a restricted key, and a restricted key before making anything', async () => {
    const PATH = '/api/v1/panel/create-application';
    expect(outcome(await restricted.post(PATH, { name: 'short' }))).toBe('400 VALIDATION_ERROR');
    expect(outcome(await restricted.post(PATH, { name: 'long enough' }))).toBe('403 application_forbidden');
    expect((await owner.session.get('/api/v1/panel/get-applications')).data).toHaveLength(2);
  });
});

describe('an API key route refuses', () => {
  it('a malformed body before an unknown key', async () => {
    const path = `/api/v1/panel/api-keys/${UNKNOWN}`;
    expect(outcome(await owner.session.patch(path, {}))).toBe('400 VALIDATION_ERROR');
    expect(outcome(await owner.session.patch(path, { name: 'Valid name' }))).toBe('404 not_found');
  });

  it('a key before a missing CSRF token, and that before a malformed body', async () => {
    const { api } = await createKey(owner, { scopes: [...SCOPES] });
    expect(outcome(await api.post('/api/v1/panel/api-keys', {}))).toBe('403 session_required');
    expect(outcome(await owner.session.with({ 'x-csrf-token': '' }).post('/api/v1/panel/api-keys', {}))).toBe('403 csrf_invalid');
  });
});
