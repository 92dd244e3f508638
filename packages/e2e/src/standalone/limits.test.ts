import { SCOPES } from '@latchkey/contract/scopes';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Answer, Api, Body } from '../client/api.ts';
import { cookieOf, createApplication, createKey, PASSWORD, signUp, unique } from '../client/caller.ts';
import { outcome } from '../client/files.ts';
import { forgeKey } from '../client/key-text.ts';
import { uploadHead } from '../client/routes.ts';
import { signInTo } from '../client/two-factor.ts';
import { type DedicatedInstance, startDedicatedInstance } from '../instance/dedicated-instance.ts';

/** One instance behind a trusted proxy, so that each test is a client with its own address. */
const IP = 30;
const PRINCIPAL = 8;
const AUTH = 5;
const FAILURES = 3;
const KEYS = 4;
const UPLOADS = 2;
const APPLICATIONS = '/api/v1/panel/get-applications';
const RESUMABLE = '/api/v1/panel/uploads';
const SIGN_IN = '/api/v1/auth/sign-in';
const SIGN_UP = '/api/v1/auth/sign-up';

/**
 * Each process counts for itself for a second after Redis took longer than 250 ms, as it can on a
 * busy machine. A limit is not exact then.
 */
const RETRIED = { retry: 2 };

let instance: DedicatedInstance;
beforeAll(async () => {
  instance = await startDedicatedInstance({
    env: {
      TRUSTED_PROXIES: 'loopback',
      RATE_LIMIT_IP_PER_MINUTE: String(IP),
      RATE_LIMIT_PRINCIPAL_PER_MINUTE: String(PRINCIPAL),
      AUTH_ATTEMPTS_PER_MINUTE: String(AUTH),
      SIGN_IN_FAILURES_PER_15_MINUTES: String(FAILURES),
      API_KEYS_CREATED_PER_HOUR: String(KEYS),
      UPLOAD_ATTEMPTS_PER_MINUTE: String(UPLOADS),
    },
  });
});
afterAll(() => instance.stop());

let addresses = 0;
function newAddress(): string {
  addresses += 1;
  return `198.51.${Math.floor(addresses / 250)}.${(addresses % 250) + 1}`;
}

/** A client from an address that was never counted. */
const newClient = (address = newAddress()): Api => instance.api.with({ 'x-forwarded-for': address });
/** The same caller from a new address, so that no limit per address is in the way. */
const elsewhere = (api: Api): Api => api.with({ 'x-forwarded-for': newAddress() });
const newBody = () => ({ username: unique('u'), email: `${unique('u')}@example.com`, password: PASSWORD });

async function repeat(times: number, send: () => Promise<Answer>): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (let i = 0; i < times; i += 1) answers.push(await send());
  return answers;
}
const atOnce = (times: number, send: () => Promise<Answer>) => Promise.all(Array.from({ length: times }, send));
const statuses = (answers: readonly Answer[]) => answers.map(({ status }) => status);
const fill = (...counts: ReadonlyArray<readonly [number, number]>) =>
  counts.flatMap(([times, status]) => Array<number>(times).fill(status));

/** Checks all that a 429 says. */
function expectDenial(answer: Answer | undefined, name: string, max: number, windowSeconds: number): void {
  expect([answer?.status, answer?.code]).toEqual([429, 'rate_limit_reached']);
  const retryAfter = Number(answer?.headers.get('retry-after'));
  expect(retryAfter).toBeGreaterThan(0);
  expect(retryAfter).toBeLessThanOrEqual(windowSeconds);
  expect(answer?.headers.get('ratelimit-policy')).toBe(`"${name}";q=${max};w=${windowSeconds}`);
  expect(answer?.headers.get('ratelimit')).toBe(`"${name}";r=0;t=${retryAfter}`);
}

/** Checks that this many responses have a status, and all others are denied. */
function expectLimit(
  answers: readonly Answer[],
  [count, status]: readonly [number, number],
  name: string,
  max: number,
  windowSeconds: number,
): void {
  expect(statuses(answers).sort()).toEqual(fill([count, status], [answers.length - count, 429]));
  expectDenial(
    answers.find((answer) => answer.status === 429),
    name,
    max,
    windowSeconds,
  );
}

describe('the limit per address', RETRIED, () => {
  it('is checked before anything else, and exact for requests at the same time', async () => {
    const owner = await signUp(newClient());
    const { api: key } = await createKey(owner);
    const client = newClient();
    expect(statuses(await atOnce(IP * 2, () => client.get('/nowhere'))).sort()).toEqual(fill([IP, 404], [IP, 429]));
    const address = { 'x-forwarded-for': client.headers['x-forwarded-for'] as string };
    const denied = [
      await client.get(APPLICATIONS),
      await client.with({ authorization: `Bearer ${forgeKey()}` }).get(APPLICATIONS),
      await key.with(address).post('/api/v1/panel/create-application', '{broken'),
      await owner.session.with(address).get('/api/v1/auth/session'),
      await client.post(SIGN_UP, {}),
      await client.get('/docs/static/nothing'),
    ];
    for (const answer of denied) expectDenial(answer, 'ip', IP, 60);
    expect((await elsewhere(key).get(APPLICATIONS)).status).toBe(200);
    const probe = await fetch(`${instance.baseUrl}/healthz`, { headers: client.headers });
    expect([probe.status, probe.headers.get('ratelimit')]).toEqual([200, null]);
  });

  it('counts the last address that no trusted proxy added, and the proxy where that forwards no address', async () => {
    const address = newAddress();
    const hops = (i: number) => `10.9.8.${i}, 203.0.113.${i}, ${address}, 127.0.0.1`;
    const answers = [];
    for (let i = 0; i <= IP; i += 1) answers.push(await newClient(hops(i)).get('/nowhere'));
    expect(statuses(answers).at(-1)).toBe(429);
    const left = (answer: Answer) => Number(/r=(\d+)/.exec(answer.headers.get('ratelimit') ?? '')?.[1]);
    const [before, after] = [
      await newClient('not an address').get('/nowhere'),
      await newClient('198.51.100.1:4711').get('/nowhere'),
    ];
    expect(left(before) - left(after)).toBe(1);
  });
});

describe('the limit per key or session', RETRIED, () => {
  it('holds from any address and before the scope, also at the same time, and for no other key of the account', async () => {
    const owner = await signUp(newClient());
    const [key, unscoped, other] = [
      await createKey(owner),
      await createKey(owner, { scopes: ['account:read'] }),
      await createKey(owner),
    ];
    const answers = await atOnce(30, () => elsewhere(key.api).get(APPLICATIONS));
    expectLimit(answers, [PRINCIPAL, 200], 'principal', PRINCIPAL, 60);
    const refused = await repeat(PRINCIPAL + 1, () => elsewhere(unscoped.api).get(APPLICATIONS));
    expect(statuses(refused)).toEqual(fill([PRINCIPAL, 403], [1, 429]));
    expect((await elsewhere(other.api).get(APPLICATIONS)).status).toBe(200);
  });

  it('is reported on a success, as the tighter of two', async () => {
    const { session } = await signUp(newClient());
    for (const { headers } of await repeat(3, () => elsewhere(session).get('/api/v1/auth/session'))) {
      expect(headers.get('ratelimit-policy')).toBe(`"principal";q=${PRINCIPAL};w=60`);
      expect(headers.get('ratelimit')).toMatch(/^"principal";r=[5-7];t=([1-9]|[1-5]\d|60)$/);
      expect(headers.get('retry-after')).toBeNull();
    }
  });
});

describe('signing up and in', RETRIED, () => {
  it('are limited per address, whether they succeed or not', async () => {
    const client = newClient();
    const answers = [await client.post(SIGN_UP, newBody()), ...(await repeat(AUTH, () => client.post(SIGN_UP, {})))];
    expect(statuses(answers)).toEqual([200, ...fill([AUTH - 1, 400], [1, 429])]);
    expectDenial(answers.at(-1), 'sign-up', AUTH, 60);
    const owner = await signUp(newClient());
    expectLimit(await repeat(AUTH + 1, () => signInTo(client, owner)), [AUTH, 200], 'sign-in', AUTH, 60);
  });

  it.each([SIGN_UP, SIGN_IN])('are not spent by a page of another site: %s', async (path) => {
    const client = newClient();
    const page = client.with({ origin: 'https://evil.test', 'sec-fetch-site': 'cross-site' });
    expect(new Set((await repeat(AUTH + 1, () => page.post(path, {}))).map(outcome))).toEqual(new Set(['403 csrf_invalid']));
    const { username, ...credentials } = newBody();
    const body = path === SIGN_UP ? { ...credentials, username } : credentials;
    expect((await client.post(path, body)).status).toBe(path === SIGN_UP ? 200 : 401);
  });

  it('are rejected after failures for one email, in any case and from any address, but for one attempt each', async () => {
    const { email, password } = await signUp(newClient());
    const last = newAddress();
    const answers: Answer[] = [];
    const attempt = async (word: string, address = newAddress()) => {
      const name = answers.length % 2 ? email.toUpperCase() : email;
      answers.push(await newClient(address).post(SIGN_IN, { email: name, password: word }));
    };
    // Malformed requests and successes do not count as failures.
    await repeat(FAILURES + 1, () => newClient().post(SIGN_IN, { email }));
    const wrong = 'wrong password';
    for (const word of [wrong, wrong, password, wrong]) await attempt(word);
    for (const word of [wrong, password]) await attempt(word, last);
    expect(statuses(answers)).toEqual([401, 401, 200, 401, 401, 429]);
    expectDenial(answers[5], 'sign-in-failures', FAILURES, 900);
  });
});

it('turning two-factor authentication off is limited per account, at the same time and from wherever', RETRIED, async () => {
  const { session } = await signUp(newClient());
  const disable = () =>
    elsewhere(session).post('/api/v1/auth/two-factor/disable', { password: 'wrong password', code: '123456' });
  expectLimit(await atOnce(PRINCIPAL, disable), [AUTH, 400], 'two-factor-disabling', AUTH, 60);
});

it('creating API keys is limited per account, which only successes count for', RETRIED, async () => {
  const owner = await signUp(newClient());
  const body = { name: 'A key', scopes: SCOPES, allApplications: true };
  // Several sessions, so that the limit per session is not in the way.
  const opened = await signInTo(newClient(), owner);
  const second = instance.api.with({ cookie: cookieOf(opened.headers), 'x-csrf-token': opened.data.csrfToken });
  const create = (session: Api, given: Body) => elsewhere(session).post('/api/v1/panel/api-keys', given);
  const failures = [
    await create(owner.session, {}),
    await create(owner.session.with({ 'x-csrf-token': 'wrong' }), body),
    await create(owner.session, { ...body, allApplications: false, applicationIds: ['01900000-0000-7000-8000-00000000dead'] }),
    await create(owner.session, '{'.padEnd(70_000)),
  ];
  expect(statuses(failures)).toEqual([400, 403, 404, 413]);
  expectLimit(await atOnce(PRINCIPAL - 1, () => create(second, body)), [KEYS, 200], 'api-key-creation', KEYS, 3_600);
});

it('rotating runtime keys is limited to two an hour for each application, both types together', async () => {
  const owner = await signUp(newClient());
  const [first, second] = [await createApplication(owner.session), await createApplication(owner.session)];
  const { api } = await createKey(owner);
  const answers: Answer[] = [];
  const rotate = async (type: string, applicationId = first) => {
    answers.push(await elsewhere(api).patch('/api/v1/panel/update-api-keys', { type }, { applicationId }));
  };
  for (const type of ['unknown', 'socketKey', 'httpKey', 'httpKey']) await rotate(type);
  await rotate('httpKey', second);
  expect(statuses(answers)).toEqual([400, 200, 200, 429, 200]);
  expectDenial(answers[3], 'rotations', 2, 3_600);
  const left = [answers[1], answers[2]].map((answer) => answer?.headers.get('ratelimit')?.split(';t=')[0]);
  expect(left).toEqual(['"rotations";r=1', '"rotations";r=0']);
});

it('resumable uploads are counted when they are created, and not for each chunk', RETRIED, async () => {
  const { session } = await signUp(newClient());
  const applicationId = await createApplication(session);
  const create = () => session.post(RESUMABLE, null, {}, { headers: uploadHead(applicationId, unique(), 3) });
  const { data } = await create();
  for (const offset of [0, 1, 2]) {
    const headers = { 'tus-resumable': '1.0.0', 'content-type': 'application/offset+octet-stream', 'upload-offset': `${offset}` };
    expect((await session.patch(`${RESUMABLE}/${data.id}`, Buffer.from('x'), {}, { headers })).status).toBe(204);
  }
  expect((await create()).status).toBe(201);
  expectDenial(await create(), 'uploads', UPLOADS, 60);
});
