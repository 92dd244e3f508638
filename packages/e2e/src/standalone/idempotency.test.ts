import { createHash, randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import type { Answer, Api, SendOptions } from '../client/api.ts';
import { UPLOAD_AVATAR } from '../client/avatars.ts';
import { createApplication, createKey, signUp } from '../client/caller.ts';
import { outcome, UPLOAD } from '../client/files.ts';
import { KEY_ROUTES, nameOf, SESSION_ROUTES } from '../client/routes.ts';
import { signUpGuarded } from '../client/two-factor.ts';

const PANEL = '/api/v1/panel';
const digestOf = (text: string | Buffer) => `sha-256=:${createHash('sha256').update(text).digest('base64')}:`;

type Sent = SendOptions & { readonly method: string; readonly path: string };

/** Sends requests with one idempotency key. */
function keyed(api: Api, key: string = randomUUID()) {
  return ({ method, path, headers, ...rest }: Sent) =>
    api.send(method, path, { headers: { 'idempotency-key': key, ...headers }, ...rest });
}

const isReplayed = ({ headers }: Answer) => headers.get('idempotency-replayed') === 'true';

async function open() {
  const owner = await signUp();
  return { owner, query: { applicationId: await createApplication(owner.session) } };
}

const CHANGES = [...KEY_ROUTES, ...SESSION_ROUTES].filter(({ method, path }) => method !== 'GET' && path.startsWith(PANEL));

/** A request with another body than this one, where it has one: of the same meaning for JSON. */
function alter({ body = null, headers, ...rest }: SendOptions): SendOptions {
  const sent = { ...headers, 'content-type': headers?.['content-type'] ?? 'application/json' };
  if (headers?.['upload-length']) return { ...rest, headers: { ...headers, 'upload-length': '4' } };
  if (body instanceof Uint8Array) return { ...rest, headers: sent, body: Buffer.concat([body, body]) };
  return { ...rest, headers: sent, body: `${JSON.stringify(body ?? {})} ` };
}

/** A digest stands for bytes, and not for other bodies. */
function withDigest(request: SendOptions): SendOptions {
  const bytes = request.body instanceof Uint8Array ? Buffer.from(request.body) : 'none';
  return { ...request, headers: { ...request.headers, 'content-digest': digestOf(bytes) } };
}

it.each(CHANGES.map((route) => [nameOf(route), route] as const))(
  '%s with a key has one effect and one response',
  async (_name, route) => {
    const { owner, query } = await open();
    const prepared = (await route.prepare?.(owner.session, query.applicationId)) ?? route.request(query.applicationId);
    const { path = route.path, ...request } = prepared as SendOptions & { readonly path?: string };
    const send = keyed(owner.session);
    const repeat = (given: SendOptions = request) => send({ ...withDigest(given), method: route.method, path });
    const [first, second] = [await repeat(), await repeat()];
    expect([outcome(first), isReplayed(first)]).toEqual([expect.stringMatching(/^20[014]$/), false]);
    expect([second.status, second.text, isReplayed(second)]).toEqual([first.status, first.text, true]);
    for (const name of ['location', 'upload-offset', 'x-file-id', 'x-file-checksum'])
      expect(second.headers.get(name), name).toBe(first.headers.get(name));
    expect(outcome(await repeat(alter(request)))).toBe('422 idempotency_key_reused');
    expect(isReplayed(await keyed(owner.session)({ ...withDigest(request), method: route.method, path }))).toBe(false);
  },
);

it('keys belong to one account and route, and rejections are not stored', async () => {
  const [{ owner, query }, { owner: other }] = [await open(), await open()];
  const key = randomUUID();
  const create = { method: 'POST', path: `${PANEL}/create-application`, body: { name: 'Shared key' } };
  for (const { session } of [owner, other]) expect(isReplayed(await keyed(session, key)(create))).toBe(false);
  const levels = { method: 'POST', path: `${PANEL}/create-application-license-levels`, query, body: { levels: ['a'] } };
  expect(outcome(await keyed(owner.session, key)(levels))).toBe('200');
  const send = keyed(owner.session);
  const settings = { method: 'PATCH', path: `${PANEL}/update-application-settings`, query };
  expect(outcome(await send({ ...settings, body: { field: 'version', value: '' } }))).toBe('400 bad_request');
  expect(outcome(await send({ ...settings, body: { field: 'version', value: '2' } }))).toBe('200');
});

it('a revoked key gets no replay', async () => {
  const { owner } = await open();
  const { api, id } = await createKey(owner);
  const create = { method: 'POST', path: `${PANEL}/create-application`, body: { name: 'By a key' } };
  const send = keyed(api);
  expect(outcome(await send(create))).toBe('200');
  await owner.session.post(`${PANEL}/api-keys/${id}/revoke`);
  expect(outcome(await send(create))).toBe('401 api_key_revoked');
});

it.each(CHANGES.filter(({ method, path }) => method === 'DELETE' && /\/(uploads|releases)\//.test(path)))(
  '$method $path is replayed to a key that is restricted to the application, and to no other',
  async ({ method, prepare, ...route }) => {
    const { owner, query } = await open();
    const idempotencyKey = randomUUID();
    const { path = route.path, ...request } = (await prepare?.(owner.session, query.applicationId)) ?? {};
    const outcomeOf = async (applicationId: string) => {
      const { api } = await createKey(owner, { applicationIds: [applicationId] });
      return outcome(await keyed(api, idempotencyKey)({ ...request, method, path }));
    };
    const [first, second] = [await outcomeOf(query.applicationId), await outcomeOf(query.applicationId)];
    expect([first, second]).toEqual([expect.stringMatching(/^20[04]$/), first]);
    expect(await outcomeOf(await createApplication(owner.session))).toBe('403 application_forbidden');
  },
);

it('a deletion is not replayed to a key that was restricted to the application, once it has left the key', async () => {
  const { owner, query } = await open();
  const { api } = await createKey(owner, { applicationIds: [query.applicationId] });
  const send = keyed(api);
  const request = { method: 'DELETE', path: `${PANEL}/delete-application`, body: { ...query, code: '' } };
  expect(outcome(await send(request))).toBe('200');
  await expect.poll(async () => outcome(await send(request))).toBe('404 not_found');
});

it('an upload with a key needs a digest', async () => {
  const { owner, query } = await open();
  const headers = { 'content-type': 'application/octet-stream' };
  const request = { method: 'POST', path: UPLOAD, query: { ...query, fileName: 'digest' }, headers, body: 'content' };
  expect(outcome(await keyed(owner.session)(request))).toBe('400 bad_request');
  const avatar = { method: 'POST', path: UPLOAD_AVATAR, headers, body: 'content' };
  expect(outcome(await keyed(owner.session)(avatar))).toBe('400 bad_request');
});

it.each(['', 'a'.repeat(256), 'é', 'a\tb'])('rejects the key %j', async (key) => {
  const { owner } = await open();
  const answer = await keyed(
    owner.session,
    key,
  )({ method: 'POST', path: `${PANEL}/create-application`, body: { name: 'Wrong key' } });
  expect(outcome(answer)).toBe('400 VALIDATION_ERROR');
  expect(JSON.parse(answer.text).details[0].path).toBe('header.idempotency-key');
});

it('a deletion with a second factor is replayed without another code', async () => {
  const owner = await signUpGuarded();
  const applicationId = await createApplication(owner.session);
  const send = keyed(owner.session);
  const request = { method: 'DELETE', path: `${PANEL}/delete-application`, body: { applicationId, code: owner.nextCode() } };
  expect([outcome(await send(request)), outcome(await send(request))]).toEqual(['200', '200']);
});
