import { SCOPES } from '@latchkey/contract/scopes';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Answer, Api, Body } from '../client/api.ts';
import { createApplication, createKey, signUp, unique } from '../client/caller.ts';
import { outcome } from '../client/files.ts';
import { forgeKey } from '../client/key-text.ts';
import { uploadHead } from '../client/routes.ts';
import { type DedicatedInstance, startDedicatedInstance } from '../instance/dedicated-instance.ts';

/** One instance behind a trusted proxy, so that each test is a client with its own address. */
const IP = 30;
const PRINCIPAL = 8;
const AUTH = 5;
const FAILURES = 3;
const KEYS = 4;
const UPLOADS = 2;
const PANEL = '/api/v1/panel';
const AUTH_PATH = '/api/v1/auth';

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

async function repeat(times: number, send: () => Promise<Answer>): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (let i = 0; i < times; i += 1) answers.push(await send());
  return answers;
}
const concurrently = (times: number, send: () => Promise<Answer>) => Promise.all(Array.from({ length: times }, send));
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

it('the limit per address is checked before anything else, and exact for concurrent requests', RETRIED, async () => {
  const owner = await signUp(newClient());
  const { api: key } = await createKey(owner);
  const client = newClient();
  expect(statuses(await concurrently(IP * 2, () => client.get('/nowhere'))).sort()).toEqual(fill([IP, 404], [IP, 429]));
  const address = { 'x-forwarded-for': client.headers['x-forwarded-for'] as string };
  const denied = [
    await client.with({ authorization: `Bearer ${forgeKey()}` }).get(`${PANEL}/get-applications`),
    await key.with(address).post(`${PANEL}/create-application`, '{broken'),
    await owner.session.with(address).get(`${AUTH_PATH}/session`),
    await client.post(`${AUTH_PATH}/sign-up`, {}),
    await client.get('/docs/static/nothing'),
  ];
  for (const answer of denied) expectDenial(answer, 'ip', IP, 60);
  expect((await elsewhere(key).get(`${PANEL}/get-applications`)).status).toBe(200);
  const probe = await fetch(`${instance.baseUrl}/healthz`, { headers: client.headers });
  expect([probe.status, probe.headers.get('ratelimit')]).toEqual([200, null]);
});

it(
  'the limit per key or session holds from any address and before the scope, and is reported on a success',
  RETRIED,
  async () => {
    const owner = await signUp(newClient());
    const [key, unscoped] = [await createKey(owner), await createKey(owner, { scopes: ['account:read'] })];
    const list = (api: Api) => elsewhere(api).get(`${PANEL}/get-applications`);
    const first = await list(key.api);
    expect(first.headers.get('ratelimit-policy')).toBe(`"principal";q=${PRINCIPAL};w=60`);
    expect(first.headers.get('ratelimit')).toMatch(/^"principal";r=7;t=([1-9]|[1-5]\d|60)$/);
    const answers = await concurrently(30, () => list(key.api));
    expect(statuses(answers).sort()).toEqual(fill([PRINCIPAL - 1, 200], [31 - PRINCIPAL, 429]));
    expectDenial(answers.at(-1), 'principal', PRINCIPAL, 60);
    expect(statuses(await repeat(PRINCIPAL + 1, () => list(unscoped.api)))).toEqual(fill([PRINCIPAL, 403], [1, 429]));
  },
);

/** Sends requests one after the other until one is denied. */
async function expectLimit(send: () => Promise<Answer>, allowed: number, name: string, max: number, windowSeconds: number) {
  const answers = await repeat(max + 1, send);
  expect(statuses(answers)).toEqual(fill([max, allowed], [1, 429]));
  expectDenial(answers.at(-1), name, max, windowSeconds);
}

describe('a route has a limit, which counts', RETRIED, () => {
  it('codes and passwords that turn two-factor authentication off', async () => {
    const { session } = await signUp(newClient());
    const body = { password: 'wrong password', code: '123456' };
    const disable = () => elsewhere(session).post(`${AUTH_PATH}/two-factor/disable`, body);
    await expectLimit(disable, 400, 'two-factor-disabling', AUTH, 60);
  });

  it('API keys that were created', async () => {
    const { session } = await signUp(newClient());
    const create = (body: Body) => elsewhere(session).post(`${PANEL}/api-keys`, body);
    for (const wrong of [{}, '{'.padEnd(70_000)]) await create(wrong);
    await expectLimit(
      () => create({ name: 'A key', scopes: SCOPES, allApplications: true }),
      200,
      'api-key-creation',
      KEYS,
      3_600,
    );
  });

  it('rotations of both keys of an application', async () => {
    const { session } = await signUp(newClient());
    const applicationId = await createApplication(session);
    const types = ['socketKey', 'httpKey', 'httpKey'];
    const rotate = () => elsewhere(session).patch(`${PANEL}/update-api-keys`, { type: types.pop() }, { applicationId });
    await expectLimit(rotate, 200, 'rotations', 2, 3_600);
  });

  it('resumable uploads when they are created, and not their chunks', async () => {
    const { session } = await signUp(newClient());
    const applicationId = await createApplication(session);
    const chunk = { 'tus-resumable': '1.0.0', 'content-type': 'application/offset+octet-stream', 'upload-offset': '0' };
    const create = async () => {
      const created = await session.post(`${PANEL}/uploads`, null, {}, { headers: uploadHead(applicationId, unique(), 3) });
      const path = `${PANEL}/uploads/${created.data?.id}`;
      if (created.success) await elsewhere(session).patch(path, Buffer.from('x'), {}, { headers: chunk });
      return created;
    };
    await expectLimit(create, 201, 'uploads', UPLOADS, 60);
  });
});

describe('signing up and in', RETRIED, () => {
  it.each(['sign-up', 'sign-in'])('are limited per address, and not spent by a page of another site: %s', async (name) => {
    const client = newClient();
    const page = client.with({ origin: 'https://evil.test', 'sec-fetch-site': 'cross-site' });
    const answers = await repeat(AUTH + 1, () => page.post(`${AUTH_PATH}/${name}`, {}));
    expect(new Set(answers.map(outcome))).toEqual(new Set(['403 csrf_invalid']));
    await expectLimit(() => client.post(`${AUTH_PATH}/${name}`, {}), 400, name, AUTH, 60);
  });

  it('are rejected after failures for one email, in any case and from any address, but for one attempt each', async () => {
    const { email, password } = await signUp(newClient());
    const last = newAddress();
    const answers: Answer[] = [];
    const attempt = async (word: string, address = newAddress()) => {
      const name = answers.length % 2 ? email.toUpperCase() : email;
      answers.push(await newClient(address).post(`${AUTH_PATH}/sign-in`, { email: name, password: word }));
    };
    const wrong = 'wrong password';
    for (const word of [wrong, wrong, password, wrong]) await attempt(word);
    for (const word of [wrong, password]) await attempt(word, last);
    expect(statuses(answers)).toEqual([401, 401, 200, 401, 401, 429]);
    expectDenial(answers[5], 'sign-in-failures', FAILURES, 900);
  });
});
