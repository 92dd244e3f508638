import { SCOPES } from '@latchkey/contract/scopes';
import { beforeAll, expect, it } from 'vitest';
import type { Api, SendOptions } from '../client/api.ts';
import { createApplication, createKey, type Owner, readState, sharedApi, signUp } from '../client/caller.ts';
import { ACTION, outcome, upload } from '../client/files.ts';
import { forgeKey } from '../client/key-text.ts';
import { APPLICATION_ROUTES, nameOf, type RouteCase } from '../client/routes.ts';

/** Specification 5.2: authentication, scope, schema, existence, restriction, the action's checks. */
const UNKNOWN = '01900000-0000-7000-8000-00000000dead';
const SETTINGS = '/api/v1/panel/update-application-settings';
let owner: Owner;
let open: string;
let closed: string;
let restricted: Api;
let unscoped: Api;
let state: string;
beforeAll(async () => {
  owner = await signUp();
  [open, closed] = [await createApplication(owner.session), await createApplication(owner.session)];
  restricted = (await createKey(owner, { applicationIds: [open] })).api;
  unscoped = (await createKey(owner, { scopes: ['account:read'] })).api;
  for (const id of [open, closed]) await upload(owner.session, id, 'taken');
  state = await readState(owner, { keys: false });
});

/** The route's valid request with something that its schema rejects. */
function malformed(route: RouteCase, applicationId: string): SendOptions {
  const { query, body, headers } = route.request(applicationId);
  if (body && !(body instanceof Uint8Array)) return { ...(query && { query }), body: { ...(body as object), surplus: 1 } };
  const twice = `${new URLSearchParams(query)}&applicationId=${applicationId}`;
  return { query: twice, ...(body && { body }), ...(headers && { headers }) };
}

it.each(APPLICATION_ROUTES.map((route) => [nameOf(route), route] as const))('%s checks in order', async (_name, route) => {
  const send = async (api: Api, options: SendOptions) => outcome(await api.send(route.method, route.path, options));
  const forged = sharedApi().with({ authorization: `Bearer ${forgeKey()}` });
  expect(await send(forged, malformed(route, UNKNOWN))).toBe('401 api_key_invalid');
  expect(await send(unscoped, malformed(route, UNKNOWN))).toBe('403 insufficient_scope');
  expect(await send(unscoped, {})).toBe('403 insufficient_scope');
  for (const id of [UNKNOWN, closed]) expect(await send(restricted, malformed(route, id))).toBe('400 VALIDATION_ERROR');
  expect(await send(restricted, route.request(UNKNOWN))).toBe('404 not_found');
  expect(await send(restricted, route.request(closed))).toBe('403 application_forbidden');
});

it('the action checks come last', async () => {
  const set = async (api: Api, applicationId: string, field = 'status', value = 'broken') =>
    outcome(await api.patch(SETTINGS, { field, value }, { applicationId }));
  expect(await set(owner.session, UNKNOWN, 'color')).toBe('400 VALIDATION_ERROR');
  expect(await set(owner.session, UNKNOWN)).toBe('404 not_found');
  expect(await set(restricted, closed)).toBe('403 application_forbidden');
  expect(await set(restricted, open)).toBe('400 bad_request');
  const create = async (name: string) => outcome(await restricted.post('/api/v1/panel/create-application', { name }));
  expect([await create('short'), await create('long enough')]).toEqual(['400 VALIDATION_ERROR', '403 application_forbidden']);
  const rename = async (api: Api, applicationId: string, more: object = {}) =>
    outcome(await api.post(ACTION, { action: 'change_file_name', fileId: UNKNOWN, ...more }, { applicationId }));
  expect(await rename(owner.session, UNKNOWN)).toBe('404 not_found');
  expect(await rename(restricted, closed)).toBe('403 application_forbidden');
  expect(await rename(restricted, open)).toBe('400 bad_request');
  expect(await rename(restricted, open, { fileName: 'taken' })).toBe('404 not_found');
  const keyPath = `/api/v1/panel/api-keys/${UNKNOWN}`;
  expect(outcome(await owner.session.patch(keyPath, {}))).toBe('400 VALIDATION_ERROR');
  expect(outcome(await owner.session.patch(keyPath, { name: 'Valid name' }))).toBe('404 not_found');
  const { api } = await createKey(owner, { scopes: SCOPES });
  expect(outcome(await api.post('/api/v1/panel/api-keys', {}))).toBe('403 session_required');
  expect(outcome(await owner.session.with({ 'x-csrf-token': '' }).post('/api/v1/panel/api-keys', {}))).toBe('403 csrf_invalid');
});

it('none of these requests changed anything', async () => {
  expect(await readState(owner, { keys: false })).toBe(state);
});
