import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Answer, Api, Body } from '../testing/api.ts';
import { createApplication, createKey, PASSWORD, SCOPES, signUp, unique } from '../testing/caller.ts';
import { forgeKey } from '../testing/key-text.ts';
import { type OwnInstance, startOwnInstance } from '../testing/own-instance.ts';

/** One instance behind a trusted proxy, so that each test is a client with an address of its own. */
let instance: OwnInstance;
beforeAll(async () => {
  instance = await startOwnInstance({
    env: {
      TRUSTED_PROXIES: 'loopback',
      RATE_LIMIT_IP_PER_MINUTE: '30',
      RATE_LIMIT_PRINCIPAL_PER_MINUTE: '8',
      AUTH_ATTEMPTS_PER_MINUTE: '5',
      SIGN_IN_FAILURES_PER_15_MINUTES: '3',
      API_KEYS_CREATED_PER_HOUR: '4',
    },
  });
});
afterAll(() => instance.stop());

let addresses = 0;
function newAddress(): string {
  addresses += 1;
  return `198.51.${Math.floor(addresses / 250)}.${(addresses % 250) + 1}`;
}

/** A client from an address that nobody was counted for. */
const newClient = (address = newAddress()): Api => instance.api.with({ 'x-forwarded-for': address });
/** The same caller from another address, so that no limit per address is in the way. */
const elsewhere = (api: Api): Api => api.with({ 'x-forwarded-for': newAddress() });

async function repeat(times: number, send: () => Promise<Answer>): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (let i = 0; i < times; i += 1) answers.push(await send());
  return answers;
}

const statuses = (answers: readonly Answer[]) => answers.map(({ status }) => status);

/** Checks all that a denial says. */
function expectDenial(answer: Answer | undefined, name: string, max: number, windowSeconds: number): void {
  expect([answer?.status, answer?.code, answer?.message]).toEqual([429, 'rate_limit_reached', expect.any(String)]);
  const retryAfter = Number(answer?.headers.get('retry-after'));
  expect(retryAfter).toBeGreaterThan(0);
  expect(retryAfter).toBeLessThanOrEqual(windowSeconds);
  expect(answer?.headers.get('ratelimit-policy')).toBe(`"${name}";q=${max};w=${windowSeconds}`);
  expect(answer?.headers.get('ratelimit')).toBe(`"${name}";r=0;t=${retryAfter}`);
}

describe('the limit per address', () => {
  it('denies what is past it, whatever it is, before anything else is looked at', async () => {
    const owner = await signUp(newClient());
    const { api: key } = await createKey(owner);
    const client = newClient();
    const answers = await repeat(30, () => client.get('/nowhere'));
    expect(new Set(statuses(answers))).toEqual(new Set([404]));
    const address = { 'x-forwarded-for': client.headers['x-forwarded-for'] as string };
    const denied = [
      await client.get('/nowhere'),
      await client.get('/api/v1/panel/get-applications'),
      await client.with({ authorization: `Bearer ${forgeKey()}` }).get('/api/v1/panel/get-applications'),
      await key.with(address).get('/api/v1/panel/get-applications'),
      await key.with(address).post('/api/v1/panel/create-application', '{broken'),
      await owner.session.with(address).get('/api/v1/auth/session'),
      await client.post('/api/v1/auth/sign-up', {}),
      await client.get('/docs/static/nothing'),
    ];
    for (const answer of denied) expectDenial(answer, 'ip', 30, 60);
    expect((await elsewhere(key).get('/api/v1/panel/get-applications')).status).toBe(200);
  });

  it('says on a success where it stands, and counts down', async () => {
    const owner = await signUp(newClient());
    const session = elsewhere(owner.session);
    const answers = await repeat(3, () => session.get('/api/v1/auth/session'));
    const remaining = answers.map(({ headers }) => Number(/r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1]));
    // Of both limits the tighter is told: 8 for the principal.
    expect(remaining).toEqual([7, 6, 5]);
    for (const { headers } of answers) {
      expect(headers.get('ratelimit-policy')).toBe('"principal";q=8;w=60');
      expect(headers.get('ratelimit')).toMatch(/^"principal";r=\d;t=([1-9]|[1-5]\d|60)$/);
      expect(headers.get('retry-after')).toBeNull();
    }
  });

  it('is exact for requests at once', async () => {
    const client = newClient();
    const answers = await Promise.all(Array.from({ length: 60 }, () => client.get('/api/v1/panel/get-applications')));
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(30);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(30);
  });

  it('counts a network of IPv6 as one, and IPv4 in IPv6 as IPv4', async () => {
    const answers = [];
    for (let i = 0; i < 31; i += 1) answers.push(await newClient(`2001:db8:77:1::${i.toString(16)}`).get('/nowhere'));
    expect(statuses(answers)).toEqual([...Array(30).fill(404), 429]);
    expect((await newClient('2001:db8:77:2::1').get('/nowhere')).status).toBe(404);
    const address = newAddress();
    await repeat(30, () => newClient(address).get('/nowhere'));
    expect((await newClient(`::ffff:${address}`).get('/nowhere')).status).toBe(429);
  });

  it('does not count the probes', async () => {
    const client = newClient();
    await repeat(31, () => client.get('/nowhere'));
    const response = await fetch(`${instance.baseUrl}/healthz`, { headers: client.headers });
    expect([response.status, response.headers.get('ratelimit')]).toEqual([200, null]);
  });
});

describe('the address of a client', () => {
  it('is the last one that no trusted proxy added, whatever the client made up before it', async () => {
    const address = newAddress();
    const forwarded = (list: string) => newClient(list).get('/nowhere');
    const answers = [];
    for (let i = 0; i < 31; i += 1) answers.push(await forwarded(`10.9.8.${i}, 203.0.113.${i}, ${address}, 127.0.0.1`));
    expect(statuses(answers).at(-1)).toBe(429);
  });

  it('is the proxy’s own where that forwards what is no address', async () => {
    const before = await newClient('not an address').get('/nowhere');
    const after = await newClient('198.51.100.1:4711').get('/nowhere');
    const left = (answer: Answer) => Number(/r=(\d+)/.exec(answer.headers.get('ratelimit') ?? '')?.[1]);
    expect(left(before) - left(after)).toBe(1);
  });
});

describe('the limit per key or session', () => {
  it('denies what is past it from any address, and no other key of the account', async () => {
    const owner = await signUp(newClient());
    const key = await createKey(owner);
    const other = await createKey(owner);
    const answers = await repeat(10, () => elsewhere(key.api).get('/api/v1/panel/get-applications'));
    expect(statuses(answers)).toEqual([...Array(8).fill(200), 429, 429]);
    expectDenial(answers[9], 'principal', 8, 60);
    expect((await elsewhere(other.api).get('/api/v1/panel/get-applications')).status).toBe(200);
  });

  it('is exact for requests at once, also while the gateway does not know the key', async () => {
    const { api } = await createKey(await signUp(newClient()));
    const answers = await Promise.all(Array.from({ length: 30 }, () => elsewhere(api).get('/api/v1/panel/get-applications')));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(8);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(22);
  });

  it('denies before the scope is looked at', async () => {
    const { api } = await createKey(await signUp(newClient()), { scopes: ['account:read'] });
    const answers = await repeat(9, () => elsewhere(api).get('/api/v1/panel/get-applications'));
    expect(statuses(answers)).toEqual([...Array(8).fill(403), 429]);
  });

  it('denies also the request that uses up the limit per address', async () => {
    const { api } = await createKey(await signUp(newClient()));
    await repeat(8, () => elsewhere(api).get('/api/v1/panel/get-applications'));
    const client = newClient();
    await repeat(29, () => client.get('/nowhere'));
    const last = await api
      .with({ 'x-forwarded-for': client.headers['x-forwarded-for'] as string })
      .get('/api/v1/panel/get-applications');
    expectDenial(last, 'principal', 8, 60);
  });
});

describe('sign-up', () => {
  it('is denied past its limit per address, whether it succeeds or not', async () => {
    const client = newClient();
    const body = () => ({ username: unique('u'), email: `${unique('u')}@example.com`, password: PASSWORD });
    const answers = [
      await client.post('/api/v1/auth/sign-up', body()),
      ...(await repeat(5, () => client.post('/api/v1/auth/sign-up', {}))),
    ];
    expect(statuses(answers)).toEqual([200, 400, 400, 400, 400, 429]);
    expectDenial(answers[5], 'sign-up', 5, 60);
    expect((await newClient().post('/api/v1/auth/sign-up', body())).status).toBe(200);
  });
});

describe('sign-in', () => {
  it('is denied past its limit per address', async () => {
    const { email, password } = await signUp(newClient());
    const client = newClient();
    const answers = await repeat(6, () => client.post('/api/v1/auth/sign-in', { email, password }));
    expect(statuses(answers)).toEqual([200, 200, 200, 200, 200, 429]);
    expectDenial(answers[5], 'sign-in', 5, 60);
  });

  it('is denied after failures for one email, from any address and in any case, with the right password too, but for one attempt', async () => {
    const { email, password } = await signUp(newClient());
    const last = newAddress();
    const tryIn = (name: string, word: string, address = newAddress()) =>
      newClient(address).post('/api/v1/auth/sign-in', { email: name, password: word });
    const answers = [
      await tryIn(email, 'wrong password'),
      await tryIn(email.toUpperCase(), 'wrong password'),
      await tryIn(email, password),
      await tryIn(email.replace('user', 'USER'), 'wrong password'),
      await tryIn(email, 'wrong password', last),
      await tryIn(email.toUpperCase(), password, last),
    ];
    expect(statuses(answers)).toEqual([401, 401, 200, 401, 401, 429]);
    expectDenial(answers[5], 'sign-in-failures', 3, 900);
  });

  it('is not denied to an owner who is at home nowhere yet, however long one address keeps failing', async () => {
    const { email, password } = await signUp(newClient());
    const [attacker, away] = [newAddress(), newAddress()];
    const tryIn = (address: string, word: string) => newClient(address).post('/api/v1/auth/sign-in', { email, password: word });
    const failures = await repeat(5, () => tryIn(attacker, 'wrong password'));
    expect(statuses(failures)).toEqual([401, 401, 401, 401, 429]);
    expect((await tryIn(away, password)).status).toBe(200);
    expect((await tryIn(away, password)).status).toBe(200);
  });

  it('is not denied to the owner at home, however long others keep failing from elsewhere', async () => {
    const [home, office] = [newAddress(), newAddress()];
    const { email, password } = await signUp(newClient(home));
    const tryIn = (address: string, word: string) => newClient(address).post('/api/v1/auth/sign-in', { email, password: word });
    expect((await tryIn(office, password)).status).toBe(200);
    const attacker = newAddress();
    const failures = await repeat(5, () => tryIn(attacker, 'wrong password'));
    expect(statuses(failures)).toEqual([401, 401, 401, 401, 429]);
    const atHome = [await tryIn(home, 'wrong password'), await tryIn(home, password), await tryIn(office, password)];
    expect(statuses(atHome)).toEqual([401, 200, 200]);
  });

  it('is denied at home too after as many failures there, which count for that place alone', async () => {
    const [home, office] = [newAddress(), newAddress()];
    const { email, password } = await signUp(newClient(home));
    const tryIn = (address: string, word: string) => newClient(address).post('/api/v1/auth/sign-in', { email, password: word });
    expect(statuses([await tryIn(home, password), await tryIn(office, password)])).toEqual([200, 200]);
    const answers = await Promise.all(Array.from({ length: 4 }, () => tryIn(home, 'wrong password')));
    expect(statuses(answers).sort()).toEqual([401, 401, 401, 429]);
    expectDenial(
      answers.find(({ status }) => status === 429),
      'sign-in-failures',
      3,
      900,
    );
    expect((await tryIn(office, password)).status).toBe(200);
    expect((await tryIn(newAddress(), 'wrong password')).status).toBe(401);
  });

  it('is denied in the same way for an email that has no account', async () => {
    const email = `${unique('nobody')}@example.com`;
    const client = newClient();
    const answers = await repeat(5, () => client.post('/api/v1/auth/sign-in', { email, password: PASSWORD }));
    expect(statuses(answers)).toEqual([401, 401, 401, 401, 429]);
    expectDenial(answers[4], 'sign-in-failures', 3, 900);
  });

  it('tries no more passwords than that when they come at once', async () => {
    const { email } = await signUp(newClient());
    const addresses = Array.from({ length: 4 }, newAddress);
    const tryIn = (address: string, i: number) =>
      newClient(address).post('/api/v1/auth/sign-in', { email, password: `wrong password ${i}` });
    const answers = await Promise.all(addresses.flatMap((address) => Array.from({ length: 5 }, (_, i) => tryIn(address, i))));
    // One of each address is its own.
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(3 + 4);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(13);
  });

  it('does not count what was malformed or succeeded as a failure', async () => {
    const { email, password } = await signUp(newClient());
    await repeat(4, () => newClient().post('/api/v1/auth/sign-in', { email }));
    await repeat(4, () => newClient().post('/api/v1/auth/sign-in', { email, password: '' }));
    const answers = await repeat(6, () => newClient().post('/api/v1/auth/sign-in', { email, password }));
    expect(new Set(statuses(answers))).toEqual(new Set([200]));
  });
});

describe('turning two-factor authentication off', () => {
  it('is denied past its limit per account, however many come at once and from wherever', async () => {
    const owner = await signUp(newClient());
    const disable = () =>
      elsewhere(owner.session).post('/api/v1/auth/two-factor/disable', { password: 'wrong password', code: '123456' });
    const answers = await Promise.all(Array.from({ length: 8 }, disable));
    expect(statuses(answers).sort()).toEqual([400, 400, 400, 400, 400, 429, 429, 429]);
    expectDenial(
      answers.find(({ status }) => status === 429),
      'two-factor-disabling',
      5,
      60,
    );
  });
});

describe('making API keys', () => {
  const body = { name: 'A key', scopes: SCOPES, allApplications: true };

  it('is denied past its limit per account, which only successes count for', async () => {
    const owner = await signUp(newClient());
    // Sessions of one account share it, so that the limit per session is not in the way.
    const sessions = [owner.session];
    for (let i = 0; i < 2; i += 1) {
      const opened = await newClient().post('/api/v1/auth/sign-in', { email: owner.email, password: owner.password });
      const [cookie = ''] = (opened.headers.get('set-cookie') ?? '').split(';');
      sessions.push(instance.api.with({ cookie, 'x-csrf-token': opened.data.csrfToken }));
    }
    const create = (session: Api | undefined, given: Body) => elsewhere(session as Api).post('/api/v1/panel/api-keys', given);
    const failures = [
      await create(sessions[0], {}),
      await create(sessions[0], { ...body, name: 'x' }),
      await create(sessions[0]?.with({ 'x-csrf-token': 'wrong' }), body),
      await create(sessions[0], { ...body, allApplications: false, applicationIds: ['01900000-0000-7000-8000-00000000dead'] }),
      await create(sessions[1], '{'.padEnd(70_000)),
    ];
    expect(statuses(failures)).toEqual([400, 400, 403, 404, 413]);
    const answers = [
      ...(await repeat(3, () => create(sessions[1], body))),
      ...(await repeat(3, () => create(sessions[2], body))),
    ];
    expect(statuses(answers)).toEqual([200, 200, 200, 200, 429, 429]);
    expectDenial(answers[5], 'api-key-creation', 4, 3_600);
    expect((await elsewhere(sessions[2] as Api).get('/api/v1/panel/api-keys')).data).toHaveLength(4);
  });

  it('is exact for requests at once', async () => {
    const owner = await signUp(newClient());
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => elsewhere(owner.session).post('/api/v1/panel/api-keys', body)),
    );
    expect(statuses(answers).filter((status) => status === 200)).toHaveLength(4);
    expect(statuses(answers).filter((status) => status === 429)).toHaveLength(4);
  });
});

describe('rotating runtime keys', () => {
  it('is denied past two an hour for each application, both types together', async () => {
    const owner = await signUp(newClient());
    const [first, second] = [await createApplication(owner.session), await createApplication(owner.session)];
    const { api } = await createKey(owner);
    const rotate = (type: string, applicationId: string) =>
      elsewhere(api).patch('/api/v1/panel/update-api-keys', { type }, { applicationId });
    const answers = [
      await rotate('unknown', first),
      await rotate('socketKey', first),
      await rotate('httpKey', first),
      await rotate('socketKey', first),
      await rotate('httpKey', first),
      await rotate('httpKey', second),
    ];
    expect(statuses(answers)).toEqual([400, 200, 200, 429, 429, 200]);
    expectDenial(answers[4], 'rotations', 2, 3_600);
    const left = [answers[1], answers[2]].map((answer) => answer?.headers.get('ratelimit')?.split(';t=')[0]);
    expect(left).toEqual(['"rotations";r=1', '"rotations";r=0']);
  });
});
