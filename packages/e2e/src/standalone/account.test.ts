import { describe, expect, inject, it } from 'vitest';
import type { Answer, Api } from '../client/api.ts';
import { cookieOf, createApplication, createKey, type Owner, sharedApi, signUp, unique } from '../client/caller.ts';
import { outcome } from '../client/files.ts';
import { codeAt, signInTo, signUpGuarded } from '../client/two-factor.ts';
import { waitForMail } from '../fakes/mail.ts';

const AUTH = '/api/v1/auth';
const UNKNOWN = '01900000-0000-7000-8000-00000000dead';
const newPassword = 'another long passphrase';
const { port } = inject('latchkeyInstance');

const signIn = (owner: Pick<Owner, 'email' | 'password'>, code?: string) => signInTo(sharedApi(), owner, code);
const isSignedIn = async (cookie: string) => outcome(await sharedApi().with({ cookie }).get(`${AUTH}/session`));

describe('the sessions of an account', () => {
  it('have an unreadable cookie of thirty days, are listed without it, and end one by one', async () => {
    const { session, cookie, ...owner } = await signUp(sharedApi().with({ 'user-agent': 'Signing up' }));
    const second = await signInTo(sharedApi().with({ 'user-agent': '<b>café</b>' }), owner);
    const secondCookie = cookieOf(second.headers);
    expect(second.headers.get('set-cookie')).toMatch(/^session=[\w-]{43}; Max-Age=2592000; Path=\/; HttpOnly; SameSite=Lax$/);
    const listed = await session.get(`${AUTH}/sessions`);
    const record = (current: boolean, userAgent: string) => ({
      ...{ id: expect.stringMatching(/^[0-9a-f-]{36}$/), current, userAgent, lastUsedIp: '127.0.0.1' },
      ...{ createdAt: expect.stringMatching(/Z$/), lastUsedAt: expect.stringMatching(/Z$/) },
    });
    expect([listed.message, listed.data]).toEqual([
      'Successfully fetched sessions.',
      [record(true, 'Signing up'), record(false, '<b>café</b>')],
    ]);
    for (const one of [cookie, secondCookie]) expect(listed.text).not.toContain(one.slice('session='.length));
    const [{ id: ownId }, { id: secondId }] = listed.data;
    const ended = await session.delete(`${AUTH}/sessions/${secondId}`);
    expect([outcome(ended), ended.message, ended.headers.get('set-cookie')]).toEqual(['200', 'Session ended.', null]);
    expect(await isSignedIn(secondCookie)).toBe('401 unauth');
    const signedOut = await session.delete(`${AUTH}/sessions/${ownId}`);
    expect([outcome(signedOut), cookieOf(signedOut.headers)]).toEqual(['200', 'session=']);
    expect(await isSignedIn(cookie)).toBe('401 unauth');
  });

  it('end with a change of the password or second factor, but that of the change; all end with signing out everywhere', async () => {
    const owner = await signUp();
    const expectEnd = async (credentials: object, code: string | undefined, change: () => Promise<Answer>) => {
      const cookie = cookieOf((await signIn({ ...owner, ...credentials }, code)).headers);
      expect(await isSignedIn(cookie)).toBe('200');
      const answer = await change();
      expect([outcome(answer), await isSignedIn(cookie)]).toEqual(['200', '401 unauth']);
      return answer;
    };
    const post = (path: string, body: object | null = null) => owner.session.post(`${AUTH}/${path}`, body);
    await expectEnd({}, undefined, () => post('password/change', { password: owner.password, newPassword }));
    const password = newPassword;
    const { secret } = (await post('two-factor/set-up')).data;
    const nowMs = Date.now();
    const enabled = await expectEnd({ password }, undefined, () => post('two-factor/enable', { code: codeAt(secret, nowMs) }));
    const body = { password, code: codeAt(secret, nowMs + 30_000) };
    await expectEnd({ password }, enabled.data.recoveryCodes[0], () => post('two-factor/disable', body));
    expect(await isSignedIn(owner.cookie)).toBe('200');
    const everywhere = await expectEnd({ password }, undefined, () => post('sign-out-everywhere'));
    expect(everywhere.headers.get('set-cookie')).toMatch(/^session=; Max-Age=0; /);
    expect(await isSignedIn(owner.cookie)).toBe('401 unauth');
  });
});

it('a password is reset, and an email changed, by the links that mails take to their addresses', async () => {
  const owner = await signUp();
  const post = async (path: string, body: object, api: Api = owner.session) => api.post(`${AUTH}/${path}`, body);
  const email = `${unique('new')}@example.com`;
  expect(outcome(await post('email/change', { email, password: owner.password }))).toBe('200');
  const confirmation = await waitForMail(email);
  expect(confirmation.link).toBe(`http://localhost:${port}/confirm-email#token=${confirmation.token}`);
  expect(outcome(await post('email/confirm', { token: confirmation.token }))).toBe('200');
  expect((await owner.session.get(`${AUTH}/session`)).data.account.email).toBe(email);
  const forgot = (address: string) => post('password/forgot', { email: address }, sharedApi());
  const [known, unknown] = [await forgot(email), await forgot(owner.email)];
  expect([outcome(known), known.text]).toEqual(['200', unknown.text]);
  const { link, token } = await waitForMail(email, 'reset-password');
  expect(link).toBe(`http://localhost:${port}/reset-password#token=${token}`);
  const reset = async () => outcome(await post('password/reset', { token, newPassword }, sharedApi()));
  expect([await reset(), await reset()]).toEqual(['200', '400 bad_request']);
  expect(await isSignedIn(owner.cookie)).toBe('401 unauth');
  expect(outcome(await signIn({ email, password: newPassword }))).toBe('200');
});

it('a sign-in to an account with a second factor needs a code, and sets no cookie without one', async () => {
  const owner = await signUpGuarded();
  const refused = await Promise.all([undefined, owner.wrongCode(), ''].map((code) => signIn(owner, code)));
  expect(refused.map(outcome)).toEqual(['401 two_factor_required', '400 bad_request', '400 bad_request']);
  for (const { headers } of refused) expect(headers.get('set-cookie')).toBeNull();
  const { data } = await signIn(owner, owner.nextCode());
  expect(data.account).toMatchObject({ id: owner.accountId, twoFactorEnabled: true });
});

describe('the deletion of an application', () => {
  const remove = async (api: Api, applicationId: string, code?: unknown) =>
    outcome(await api.delete('/api/v1/panel/delete-application', { applicationId, ...(code !== undefined && { code }) }));

  it('by a session of such an account needs a code, which is checked last and used up', async () => {
    const owner = await signUpGuarded();
    const [first, second] = [await createApplication(owner.session), await createApplication(owner.session)];
    const code = owner.nextCode();
    expect(await remove(owner.session, UNKNOWN)).toBe('400 VALIDATION_ERROR');
    expect(await remove(owner.session, first, 123_456)).toBe('400 VALIDATION_ERROR');
    expect(await remove(owner.session, UNKNOWN, code)).toBe('404 not_found');
    for (const wrong of ['', owner.wrongCode(), owner.usedCode])
      expect(await remove(owner.session, first, wrong), wrong).toBe('400 bad_request');
    const outcomes = await Promise.all([first, second].map((id) => remove(owner.session, id, code)));
    expect(outcomes.sort()).toEqual(['200', '400 bad_request']);
    const [left] = (await owner.session.get('/api/v1/panel/get-applications')).data;
    expect(await remove(owner.session, left.id, owner.recoveryCodes[3])).toBe('200');
  });

  it('by its key, and by a session of an account without a second factor, ignores the code', async () => {
    const guarded = await signUpGuarded();
    for (const { api } of [await createKey(guarded), { api: (await signUp()).session }]) {
      for (const code of ['', guarded.wrongCode(), 'x'.repeat(1_000)])
        expect(await remove(api, await createApplication(api), code)).toBe('200');
    }
  });
});
