import { createHash, randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import type { Answer, Api, SendOptions } from '../client/api.ts';
import { getAvatar, plain, uploadAvatar } from '../client/avatars.ts';
import { createApplication, createKey, signUp } from '../client/caller.ts';
import { ACTION, listFiles, outcome, UPLOAD } from '../client/files.ts';
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

const newKey = (name: string) => ({ name, scopes: ['files:read'], allApplications: true });

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

it('concurrent requests with a key have one effect', async () => {
  const { owner } = await open();
  const send = keyed(owner.session);
  const body = { name: 'Only one' };
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => send({ method: 'POST', path: `${PANEL}/create-application`, body })),
  );
  for (const answer of answers) {
    expect(['200', '409 idempotency_in_progress']).toContain(outcome(answer));
    if (answer.status === 409) expect(answer.headers.get('retry-after')).toBe('1');
  }
  const { data } = await owner.session.get(`${PANEL}/get-applications`);
  expect(data.filter(({ name }: { name: string }) => name === body.name)).toHaveLength(1);
});

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

it('a revoked key gets no replay, and the secret of a new key only the credential that made it', async () => {
  const { owner } = await open();
  const { api, id } = await createKey(owner);
  const create = { method: 'POST', path: `${PANEL}/create-application`, body: { name: 'By a key' } };
  const send = keyed(api);
  expect(outcome(await send(create))).toBe('200');
  await owner.session.post(`${PANEL}/api-keys/${id}/revoke`);
  expect(outcome(await send(create))).toBe('401 api_key_revoked');
  const key = randomUUID();
  const made = { method: 'POST', path: `${PANEL}/api-keys`, body: newKey('Secret') };
  const first = await keyed(owner.session, key)(made);
  expect((await keyed(owner.session, key)(made)).data.plaintextKey).toBe(first.data.plaintextKey);
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

it('an upload with a key needs a digest, which stands for its body', async () => {
  const { owner, query } = await open();
  const send = keyed(owner.session);
  const request = {
    method: 'POST',
    path: UPLOAD,
    query: { ...query, fileName: 'digest' },
    headers: { 'content-type': 'application/octet-stream' },
  };
  expect(outcome(await send({ ...request, body: 'content' }))).toBe('400 bad_request');
  const headers = { ...request.headers, 'content-digest': digestOf('content') };
  const first = await send({ ...request, headers, body: 'content' });
  await owner.session.post(ACTION, { action: 'delete_file', fileId: first.data.id }, query);
  const second = await send({ ...request, headers, body: 'content' });
  expect([isReplayed(second), second.text]).toEqual([true, first.text]);
  expect((await listFiles(owner.session, query.applicationId)).map(({ displayName }) => displayName)).toEqual([]);
});

it('a repeated removal of the avatar leaves a later one', async () => {
  const { session } = await signUp();
  const send = keyed(session);
  const request = { method: 'DELETE', path: `${PANEL}/avatar` };
  const image = await plain(8, 8).png().toBuffer();
  expect(outcome(await uploadAvatar(session, image))).toBe('200');
  expect(isReplayed(await send(request))).toBe(false);
  expect(outcome(await uploadAvatar(session, image))).toBe('200');
  expect(isReplayed(await send(request))).toBe(true);
  expect((await getAvatar(session)).status).toBe(200);
});

it('a repeated upload of an avatar leaves a later one', async () => {
  const { session } = await signUp();
  const [image, other] = (await Promise.all([8, 9].map((size) => plain(size, size).png().toBuffer()))) as [Buffer, Buffer];
  const key = randomUUID();
  const send = (body: Buffer, digest?: string, idempotencyKey: string = key) =>
    uploadAvatar(session, body, { 'idempotency-key': idempotencyKey, ...(digest && { 'content-digest': digest }) });
  expect(outcome(await send(image))).toBe('400 bad_request');
  expect(outcome(await send(image, digestOf('another')))).toBe('400 invalid_file');
  const first = await send(image, digestOf(image));
  expect([outcome(first), isReplayed(first)]).toEqual(['200', false]);
  const later = await uploadAvatar(session, other);
  const second = await send(image, digestOf(image));
  expect([outcome(second), isReplayed(second), second.text]).toEqual(['200', true, first.text]);
  expect(outcome(await send(other, digestOf(other)))).toBe('422 idempotency_key_reused');
  expect((await getAvatar(session, later.data.avatarUrl)).status).toBe(200);
  const answers = await Promise.all([1, 2].map(() => send(image, digestOf(image), 'concurrent')));
  for (const answer of answers) expect(['200', '409 idempotency_in_progress']).toContain(outcome(answer));
  const last = await send(image, digestOf(image), 'concurrent');
  const urls = [...answers, last].filter(({ status }) => status === 200).map(({ data }) => data.avatarUrl);
  expect(new Set(urls).size).toBe(1);
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
