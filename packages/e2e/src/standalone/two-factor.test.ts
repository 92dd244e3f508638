import { describe, expect, it } from 'vitest';
import type { Answer } from '../client/api.ts';
import { cookieOf, createApplication, createKey, type Owner, sharedApi, signUp } from '../client/caller.ts';
import { outcome } from '../client/files.ts';
import { codeAt, signInTo, signUpGuarded } from '../client/two-factor.ts';

const TWO_FACTOR = '/api/v1/auth/two-factor';
const UNKNOWN = '01900000-0000-7000-8000-00000000dead';

const signIn = (owner: Pick<Owner, 'email' | 'password'>, code?: string) => signInTo(sharedApi(), owner, code);

describe('signing in to an account with a second factor', () => {
  it('asks for a code, rejects a wrong one, and takes a right one', async () => {
    const owner = await signUpGuarded();
    const codes = [undefined, owner.wrongCode(), '', 'abcdef', owner.usedCode];
    const refused = await Promise.all(codes.map((code) => signIn(owner, code)));
    expect(refused.map(outcome)).toEqual(['401 two_factor_required', ...Array(4).fill('400 bad_request')]);
    for (const { headers } of refused) expect(headers.get('set-cookie')).toBeNull();
    const { data } = await signIn(owner, owner.nextCode());
    expect(data.account).toMatchObject({ id: owner.accountId, twoFactorEnabled: true });
    expect(outcome(await signIn(owner, owner.recoveryCodes[0]?.replaceAll('-', '').toUpperCase()))).toBe('200');
  });

  it('is rejected after five failures, wherever the code is given, but not with a recovery code', async () => {
    const other = await signUpGuarded();
    const applicationId = await createApplication(other.session);
    for (let i = 0; i < 5; i += 1) expect(outcome(await signIn(other, other.wrongCode()))).toBe('400 bad_request');
    const code = other.nextCode();
    const denied = await signIn(other, code);
    const retryAfter = Number(denied.headers.get('retry-after'));
    expect([retryAfter > 880, retryAfter <= 900]).toEqual([true, true]);
    expect(denied.headers.get('ratelimit-policy')).toBe('"two-factor-failures";q=5;w=900');
    expect(denied.headers.get('ratelimit')).toBe(`"two-factor-failures";r=0;t=${retryAfter}`);
    const elsewhere = [
      await other.session.delete('/api/v1/panel/delete-application', { applicationId, code }),
      await other.session.post(`${TWO_FACTOR}/disable`, { password: other.password, code }),
    ];
    expect([denied, ...elsewhere].map(outcome)).toEqual(Array(3).fill('429 rate_limit_reached'));
    expect(outcome(await signIn(other, other.recoveryCodes[0]))).toBe('200');
  });
});

describe('deleting an application', () => {
  const remove = async (api: Owner['session'], applicationId: string, code?: unknown) =>
    outcome(await api.delete('/api/v1/panel/delete-application', { applicationId, ...(code !== undefined && { code }) }));

  it('by a session of such an account needs a code, which is checked last and used up', async () => {
    const owner = await signUpGuarded();
    const others = await createApplication((await signUp()).session);
    const [first, second] = [await createApplication(owner.session), await createApplication(owner.session)];
    const code = owner.nextCode();
    expect(await remove(owner.session, UNKNOWN)).toBe('400 VALIDATION_ERROR');
    expect(await remove(owner.session, first, 123_456)).toBe('400 VALIDATION_ERROR');
    for (const id of [UNKNOWN, others, 'no-uuid']) expect(await remove(owner.session, id, code)).toBe('404 not_found');
    for (const wrong of ['', owner.wrongCode(), 'x', owner.usedCode])
      expect(await remove(owner.session, first, wrong), wrong).toBe('400 bad_request');
    const outcomes = await Promise.all([remove(owner.session, first, code), remove(owner.session, second, code)]);
    expect(outcomes.sort()).toEqual(['200', '400 bad_request']);
    const [left, ...more] = (await owner.session.get('/api/v1/panel/get-applications')).data;
    expect([more, await remove(owner.session, left.id, owner.recoveryCodes[3])]).toEqual([[], '200']);
  });

  it('by its key, and by a session of an account without a second factor, ignores the code', async () => {
    const guarded = await signUpGuarded();
    for (const { api } of [await createKey(guarded), { api: (await signUp()).session }]) {
      for (const code of ['', guarded.wrongCode(), 'x'.repeat(1_000)])
        expect(await remove(api, await createApplication(api), code)).toBe('200');
    }
  });
});

it('the other sessions end with the next request by enabling and by disabling, and all by signing out everywhere', async () => {
  const owner = await signUp();
  const read = async (cookie: string) => outcome(await sharedApi().with({ cookie }).get('/api/v1/auth/session'));
  const expectEnd = async (code: string | undefined, change: () => Promise<Answer>): Promise<Answer> => {
    const cookie = cookieOf((await signIn(owner, code)).headers);
    expect(await read(cookie)).toBe('200');
    const answer = await change();
    expect([outcome(answer), await read(cookie)]).toEqual(['200', '401 unauth']);
    return answer;
  };
  const { secret } = (await owner.session.post(`${TWO_FACTOR}/set-up`)).data;
  const enabledAt = Date.now();
  const enabled = await expectEnd(undefined, () =>
    owner.session.post(`${TWO_FACTOR}/enable`, { code: codeAt(secret, enabledAt) }),
  );
  const body = { password: owner.password, code: codeAt(secret, enabledAt + 30_000) };
  await expectEnd(enabled.data.recoveryCodes[0], () => owner.session.post(`${TWO_FACTOR}/disable`, body));
  expect(await read(owner.cookie)).toBe('200');
  const key = await createKey(owner);
  const everywhere = await expectEnd(undefined, () => owner.session.post('/api/v1/auth/sign-out-everywhere'));
  expect(everywhere.headers.get('set-cookie')).toMatch(/^session=; Max-Age=0; /);
  expect(await read(owner.cookie)).toBe('401 unauth');
  expect(outcome(await key.api.get('/api/v1/panel/get-applications'))).toBe('200');
});
