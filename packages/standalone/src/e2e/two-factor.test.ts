import { createEmptyTestDatabase } from '@latchkey/testkit/database';
import { testRedis } from '@latchkey/testkit/redis';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Answer } from '../testing/api.ts';
import { cookieOf, createApplication, createKey, type Owner, sharedApi, signUp } from '../testing/caller.ts';
import { startInstanceForTest } from '../testing/own-instance.ts';
import { codeAt, type GuardedOwner, signInTo, signUpGuarded } from '../testing/two-factor.ts';

const TWO_FACTOR = '/api/v1/auth/two-factor';
const UNKNOWN = '01900000-0000-7000-8000-00000000dead';

const outcome = ({ status, code }: Answer) => `${status} ${code}`;
const signIn = (owner: Owner, code?: string) => signInTo(sharedApi(), owner, code);
const account = async ({ session }: Owner) => (await session.get('/api/v1/auth/session')).data.account;

describe('setting up', () => {
  it('answers a secret of 160 bits and its URL, another each time, and changes nothing', async () => {
    const owner = await signUp();
    const first = (await owner.session.post(`${TWO_FACTOR}/set-up`)).data;
    const second = (await owner.session.post(`${TWO_FACTOR}/set-up`, {})).data;
    expect(Object.keys(first).sort()).toEqual(['otpauthUrl', 'secret']);
    expect(first.secret).toMatch(/^[A-Z2-7]{32}$/);
    expect(second.secret).not.toBe(first.secret);
    const url = new URL(second.otpauthUrl);
    expect(decodeURIComponent(url.pathname)).toBe(`/Latchkey:${owner.email}`);
    expect(url.searchParams.get('secret')).toBe(second.secret);
    expect(url.searchParams.get('issuer')).toBe('Latchkey');
    expect((await account(owner)).twoFactorEnabled).toBe(false);
    expect(outcome(await signIn(owner))).toBe('200 ');
    expect(outcome(await owner.session.post(`${TWO_FACTOR}/enable`, { code: codeAt(first.secret, Date.now()) }))).toBe(
      '400 bad_request',
    );
  });

  it('is refused once enabled, as is enabling without it or again', async () => {
    const [owner, guarded] = [await signUp(), await signUpGuarded()];
    expect(outcome(await owner.session.post(`${TWO_FACTOR}/enable`, { code: '123456' }))).toBe('400 bad_request');
    expect(outcome(await guarded.session.post(`${TWO_FACTOR}/set-up`))).toBe('400 bad_request');
    expect(outcome(await guarded.session.post(`${TWO_FACTOR}/enable`, { code: guarded.nextCode() }))).toBe('400 bad_request');
    expect((await account(guarded)).twoFactorEnabled).toBe(true);
  });

  it('is enabled by a right code alone, for ten recovery codes', async () => {
    const owner = await signUp();
    const { secret } = (await owner.session.post(`${TWO_FACTOR}/set-up`)).data;
    const enable = (body: object) => owner.session.post(`${TWO_FACTOR}/enable`, body);
    for (const code of ['', '12345', '1234567', 'abcdef', '1'.repeat(1_000)])
      expect(outcome(await enable({ code })), code).toBe('400 bad_request');
    for (const body of [{}, { code: 123_456 }, { code: null }, { code: '123456', x: 1 }]) {
      expect(outcome(await enable(body)), JSON.stringify(body)).toBe('400 VALIDATION_ERROR');
    }
    const { data } = await enable({ code: codeAt(secret, Date.now()) });
    expect(data.recoveryCodes).toHaveLength(10);
    for (const code of data.recoveryCodes) expect(code).toMatch(/^[a-z2-7]{4}(-[a-z2-7]{4}){3}$/);
  });
});

describe('signing in to an account with a second factor', () => {
  let owner: GuardedOwner;
  beforeAll(async () => {
    owner = await signUpGuarded();
  });

  it('says nothing of it before the password is right', async () => {
    const wrong = { ...owner, password: 'not the password' };
    const answers = [await signIn(wrong), await signIn(wrong, owner.wrongCode()), await signIn(wrong, owner.nextCode())];
    const plain = await signIn({ ...(await signUp()), password: 'not the password' });
    for (const answer of answers) expect([answer.status, answer.text]).toEqual([401, plain.text]);
  });

  it('asks for a code, and refuses a wrong one, and sets no cookie', async () => {
    const answers = [
      await signIn(owner),
      await signIn(owner, owner.wrongCode()),
      await signIn(owner, ''),
      await signIn(owner, 'abcdef'),
      await signIn(owner, owner.usedCode),
    ];
    expect(answers.map(outcome)).toEqual(['401 two_factor_required', ...Array(4).fill('400 bad_request')]);
    for (const { headers } of answers) expect(headers.get('set-cookie')).toBeNull();
  });

  it('takes a code once, also of sign-ins at once', async () => {
    const code = owner.nextCode();
    const answers = await Promise.all([signIn(owner, code), signIn(owner, code), signIn(owner, code)]);
    expect(answers.map(outcome).sort()).toEqual(['200 ', '400 bad_request', '400 bad_request']);
    const opened = answers.find(({ status }) => status === 200);
    expect(opened?.data.account).toMatchObject({ id: owner.accountId, twoFactorEnabled: true });
  });

  it('takes a recovery code once, in any case, with or without dashes', async () => {
    const [first = '', second = ''] = owner.recoveryCodes;
    expect(outcome(await signIn(owner, first))).toBe('200 ');
    expect(outcome(await signIn(owner, second.replaceAll('-', '').toUpperCase()))).toBe('200 ');
    expect(outcome(await signIn(owner, first.toUpperCase()))).toBe('400 bad_request');
  });
});

describe('attempts', () => {
  it('are denied after five failures, with all that a denial says, and no matter where the code is given', async () => {
    const owner = await signUpGuarded();
    const applicationId = await createApplication(owner.session);
    const wrong = { ...owner, password: 'not the password' };
    for (let i = 0; i < 6; i += 1) expect(outcome(await signIn(wrong, owner.wrongCode()))).toBe('401 unauth');
    const answers = await Promise.all(Array.from({ length: 12 }, () => signIn(owner, owner.wrongCode())));
    expect(answers.map(outcome).sort()).toEqual([
      ...Array(5).fill('400 bad_request'),
      ...Array(7).fill('429 rate_limit_reached'),
    ]);
    const denied = await signIn(owner, owner.nextCode());
    expect(outcome(denied)).toBe('429 rate_limit_reached');
    const retryAfter = Number(denied.headers.get('retry-after'));
    expect(retryAfter).toBeGreaterThan(880);
    expect(retryAfter).toBeLessThanOrEqual(900);
    expect(denied.headers.get('ratelimit-policy')).toBe('"two-factor-failures";q=5;w=900');
    expect(denied.headers.get('ratelimit')).toBe(`"two-factor-failures";r=0;t=${retryAfter}`);
    const code = owner.nextCode();
    const elsewhere = [
      await owner.session.delete('/api/v1/panel/delete-application', { applicationId, code }),
      await owner.session.post(`${TWO_FACTOR}/disable`, { password: owner.password, code }),
    ];
    expect(elsewhere.map(outcome)).toEqual(Array(2).fill('429 rate_limit_reached'));
    expect(outcome(await signIn(owner, owner.recoveryCodes[0]))).toBe('200 ');
  });
});

describe('deleting an application', () => {
  const remove = (api: Owner['session'], applicationId: string, code?: unknown) =>
    api.delete('/api/v1/panel/delete-application', { applicationId, ...(code !== undefined && { code }) });

  it('by such an account’s session needs a code, which is looked at last and used up', async () => {
    const owner = await signUpGuarded();
    const others = await createApplication((await signUp()).session);
    const [first, second] = [await createApplication(owner.session), await createApplication(owner.session)];
    const code = owner.nextCode();
    expect(outcome(await remove(owner.session, UNKNOWN))).toBe('400 VALIDATION_ERROR');
    expect(outcome(await remove(owner.session, first, 123_456))).toBe('400 VALIDATION_ERROR');
    const unknown = await remove(owner.session, UNKNOWN, code);
    expect(outcome(unknown)).toBe('404 not_found');
    expect((await remove(owner.session, others, code)).text).toBe(unknown.text);
    expect(outcome(await remove(owner.session, 'no-uuid', code))).toBe('404 not_found');
    expect(outcome(await remove(owner.session, UNKNOWN, ''))).toBe('404 not_found');
    for (const wrong of ['', owner.wrongCode(), 'x', owner.usedCode]) {
      expect(outcome(await remove(owner.session, first, wrong)), wrong).toBe('400 bad_request');
    }
    const answers = await Promise.all([remove(owner.session, first, code), remove(owner.session, second, code)]);
    expect(answers.map(outcome).sort()).toEqual(['200 ', '400 bad_request']);
    const left = (await owner.session.get('/api/v1/panel/get-applications')).data;
    expect(left).toHaveLength(1);
    expect(outcome(await remove(owner.session, left[0].id, owner.recoveryCodes[3]))).toBe('200 ');
  });

  it('by its key, and by a session of an account without a second factor, ignores the code', async () => {
    const guarded = await signUpGuarded();
    const key = await createKey(guarded);
    for (const code of ['', guarded.wrongCode(), 'x'.repeat(1_000)]) {
      expect(outcome(await remove(key.api, await createApplication(key.api), code))).toBe('200 ');
    }
    const plain = await signUp();
    for (const code of ['', '123456']) {
      expect(outcome(await remove(plain.session, await createApplication(plain.session), code))).toBe('200 ');
    }
  });
});

describe('disabling', () => {
  it('needs password and code, and then sign-in asks for none', async () => {
    const owner = await signUpGuarded();
    const disable = (body: object) => owner.session.post(`${TWO_FACTOR}/disable`, body);
    const code = owner.nextCode();
    const { password } = owner;
    expect(outcome(await disable({ password: 'not the password', code }))).toBe('400 bad_request');
    expect(outcome(await disable({ password, code: owner.wrongCode() }))).toBe('400 bad_request');
    expect(await disable({ code })).toMatchObject({ status: 400, message: 'The password of the account is needed' });
    for (const body of [{ password }, { password, code, x: 1 }]) {
      expect(outcome(await disable(body))).toBe('400 VALIDATION_ERROR');
    }
    expect(outcome(await disable({ password, code }))).toBe('200 ');
    expect((await account(owner)).twoFactorEnabled).toBe(false);
    expect(outcome(await signIn(owner))).toBe('200 ');
    expect(outcome(await disable({ password, code: owner.recoveryCodes[0] ?? '' }))).toBe('400 bad_request');
  });
});

describe('the other sessions of an account', () => {
  it('end with the next request at every gateway: by enabling, by disabling, and all by signing out everywhere', async () => {
    const database = await createEmptyTestDatabase();
    onTestFinished(() => database.drop());
    const { url: redisUrl } = await testRedis();
    const options = { databaseUrl: database.url, redisUrl, env: { SECRET_KEY: 'a-secret-key-that-two-instances-share' } };
    const [here, there] = [await startInstanceForTest(options), await startInstanceForTest(options)];
    const owner = await signUp(here.api);
    const gateways = [here.api, there.api];
    const look = (cookie: string) =>
      Promise.all(gateways.map(async (api) => outcome(await api.with({ cookie }).get('/api/v1/auth/session'))));
    const expectEnd = async (cookie: string, change: () => Promise<Answer>) => {
      expect(await look(cookie)).toEqual(['200 ', '200 ']);
      expect(outcome(await change())).toBe('200 ');
      expect(await look(cookie)).toEqual(['401 unauth', '401 unauth']);
    };
    const open = async (code?: string) => cookieOf((await signInTo(there.api, owner, code)).headers);

    const { secret } = (await owner.session.post(`${TWO_FACTOR}/set-up`)).data;
    const enabledAt = Date.now();
    let recoveryCodes: string[] = [];
    await expectEnd(await open(), async () => {
      const enabled = await owner.session.post(`${TWO_FACTOR}/enable`, { code: codeAt(secret, enabledAt) });
      recoveryCodes = enabled.data.recoveryCodes;
      return enabled;
    });
    const nextCode = codeAt(secret, enabledAt + 30_000);
    const body = { password: owner.password, code: nextCode };
    await expectEnd(await open(recoveryCodes[0]), () => owner.session.post(`${TWO_FACTOR}/disable`, body));
    expect(await look(owner.cookie)).toEqual(['200 ', '200 ']);

    const key = await createKey(owner);
    let everywhere: Answer | undefined;
    await expectEnd(await open(), async () => {
      everywhere = await owner.session.post('/api/v1/auth/sign-out-everywhere');
      return everywhere;
    });
    expect(everywhere?.headers.get('set-cookie')).toMatch(/^session=; Max-Age=0; /);
    expect(await look(owner.cookie)).toEqual(['401 unauth', '401 unauth']);
    expect(outcome(await key.api.get('/api/v1/panel/get-applications'))).toBe('200 ');
  });
});
