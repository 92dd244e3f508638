import { createHash, randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import type { Answer, Api } from '../client/api.ts';
import { createApplication, createKey, signUp } from '../client/caller.ts';
import { ACTION, CHECK_NAME, listFiles, outcome, UPLOAD, upload } from '../client/files.ts';
import { signUpGuarded } from '../client/two-factor.ts';

const PANEL = '/api/v1/panel';
const digestOf = (text: string) => `sha-256=:${createHash('sha256').update(text).digest('base64')}:`;

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly query?: Record<string, string>;
  readonly body?: object | string | null;
  readonly headers?: Record<string, string>;
}

/** Sends requests with one idempotency key. */
function keyed(api: Api, key: string = randomUUID()) {
  return ({ method, path, headers, ...rest }: Sent) =>
    api.send(method, path, { headers: { 'idempotency-key': key, ...headers }, ...rest });
}

const isReplayed = ({ headers }: Answer) => headers.get('idempotency-replayed') === 'true';

async function open() {
  const owner = await signUp();
  const applicationId = await createApplication(owner.session);
  const { data } = await upload(owner.session, applicationId, 'first.txt');
  const { data: key } = await owner.session.post(`${PANEL}/api-keys`, {
    name: 'Key',
    scopes: ['files:read'],
    allApplications: true,
  });
  return { owner, query: { applicationId }, fileId: data.id as string, keyId: key.id as string };
}

type Opened = Awaited<ReturnType<typeof open>>;

const TRUSTED = {
  ...{ name: 'Jobs', issuer: 'https://issuer.example', audience: 'latchkey', claims: { sub: 'job' } },
  ...{ scopes: ['files:read'], allApplications: true, lifetimeSeconds: 60 },
};

/** A request of every route that changes something, and another body for the same route. */
const REQUESTS: ReadonlyArray<[string, (given: Opened) => Sent, object | string]> = [
  [
    'POST create-application',
    () => ({ method: 'POST', path: `${PANEL}/create-application`, body: { name: 'Once only' } }),
    { name: 'Another' },
  ],
  [
    'POST create-application-license-levels',
    ({ query }) => ({ method: 'POST', path: `${PANEL}/create-application-license-levels`, query, body: { levels: ['a'] } }),
    { levels: ['b'] },
  ],
  [
    'PATCH update-application-settings',
    ({ query }) => ({
      method: 'PATCH',
      path: `${PANEL}/update-application-settings`,
      query,
      body: { field: 'status', value: 'paused' },
    }),
    { field: 'status', value: 'online' },
  ],
  [
    'PATCH update-api-keys',
    ({ query }) => ({ method: 'PATCH', path: `${PANEL}/update-api-keys`, query, body: { type: 'httpKey' } }),
    { type: 'socketKey' },
  ],
  [
    'POST end-key-overlap',
    ({ query }) => ({ method: 'POST', path: `${PANEL}/end-key-overlap`, query, body: { type: 'httpKey' } }),
    { type: 'socketKey' },
  ],
  [
    'POST check-file-name',
    ({ query }) => ({ method: 'POST', path: CHECK_NAME, query, body: { fileName: 'new' } }),
    { fileName: 'other' },
  ],
  [
    'POST create-download-url',
    ({ query, fileId }) => ({ method: 'POST', path: `${PANEL}/create-download-url`, query, body: { fileId } }),
    { fileId: randomUUID() },
  ],
  [
    'POST file-action',
    ({ query, fileId }) => ({ method: 'POST', path: ACTION, query, body: { action: 'delete_file', fileId } }),
    { action: 'change_file_name', fileId: randomUUID(), fileName: 'x' },
  ],
  [
    'POST upload-file',
    ({ query }) => ({
      method: 'POST',
      path: UPLOAD,
      query: { ...query, fileName: 'once' },
      body: 'content',
      headers: { 'content-type': 'application/octet-stream', 'content-digest': digestOf('content') },
    }),
    'other content',
  ],
  [
    'POST api-keys',
    () => ({ method: 'POST', path: `${PANEL}/api-keys`, body: { name: 'Once', scopes: ['files:read'], allApplications: true } }),
    { name: 'Twice', scopes: ['files:read'], allApplications: true },
  ],
  [
    'PATCH api-keys',
    ({ keyId }) => ({ method: 'PATCH', path: `${PANEL}/api-keys/${keyId}`, body: { name: 'Renamed' } }),
    { name: 'Again' },
  ],
  [
    'POST trusted-issuers',
    () => ({ method: 'POST', path: `${PANEL}/trusted-issuers`, body: TRUSTED }),
    { ...TRUSTED, audience: 'another' },
  ],
  ['POST api-keys revoke', ({ keyId }) => ({ method: 'POST', path: `${PANEL}/api-keys/${keyId}/revoke` }), {}],
  [
    'DELETE delete-application',
    ({ query }) => ({ method: 'DELETE', path: `${PANEL}/delete-application`, body: { ...query, code: '' } }),
    { applicationId: randomUUID(), code: '' },
  ],
];

it.each(REQUESTS)('%s with a key has one effect and one response', async (_route, toRequest, other) => {
  const given = await open();
  const request = toRequest(given);
  const send = keyed(given.owner.session);
  const first = await send(request);
  const second = await send(request);
  expect([outcome(first), isReplayed(first), outcome(second), isReplayed(second)]).toEqual(['200', false, '200', true]);
  expect(second.text).toBe(first.text);
  expect(second.headers.get('location')).toBe(first.headers.get('location'));
  const headers = typeof other === 'string' ? { ...request.headers, 'content-digest': digestOf(other) } : {};
  expect(outcome(await send({ ...request, body: other, headers }))).toBe('422 idempotency_key_reused');
  const fresh = keyed(given.owner.session, randomUUID());
  expect(isReplayed(await fresh(request))).toBe(false);
});

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

it('a key of one account or route is no key of another, and a refusal is not kept', async () => {
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
  const body = { name: 'Secret', scopes: ['files:read'], allApplications: true };
  const key = randomUUID();
  const made = { method: 'POST', path: `${PANEL}/api-keys`, body };
  const first = await keyed(owner.session, key)(made);
  expect((await keyed(owner.session, key)(made)).data.plaintextKey).toBe(first.data.plaintextKey);
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
  expect((await listFiles(owner.session, query.applicationId)).map(({ displayName }) => displayName)).toEqual(['first.txt']);
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
