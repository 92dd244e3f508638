import { describe, expect, inject, it } from 'vitest';
import { cookieOf, sharedApi, signUp, unique } from '../client/caller.ts';
import { outcome } from '../client/files.ts';
import { signInTo, signUpGuarded } from '../client/two-factor.ts';
import { waitForMail } from '../fakes/mail.ts';

const AUTH = '/api/v1/auth';
const newPassword = 'another long passphrase';
const { port } = inject('latchkeyInstance');

const signIn = (email: string, password: string) => signInTo(sharedApi(), { email, password });
const isSignedIn = async (cookie: string) => outcome(await sharedApi().with({ cookie }).get(`${AUTH}/session`));

describe('a password', () => {
  it('is changed with the old one, which ends the other sessions immediately', async () => {
    const owner = await signUp();
    const others = await Promise.all([1, 2].map(async () => cookieOf((await signIn(owner.email, owner.password)).headers)));
    for (const cookie of others) expect(await isSignedIn(cookie)).toBe('200');
    const change = async (body: object) => outcome(await owner.session.post(`${AUTH}/password/change`, body));
    expect(await change({ newPassword })).toBe('400 bad_request');
    expect(await change({ password: 'not the password', newPassword })).toBe('400 bad_request');
    for (const wrong of ['too short', 'x'.repeat(129), null])
      expect(await change({ password: owner.password, newPassword: wrong })).toBe('400 VALIDATION_ERROR');
    expect(await change({ password: owner.password, newPassword })).toBe('200');
    expect([await isSignedIn(owner.cookie), ...(await Promise.all(others.map(isSignedIn)))]).toEqual([
      '200',
      ...Array(2).fill('401 unauth'),
    ]);
    expect(outcome(await signIn(owner.email, owner.password))).toBe('401 unauth');
    expect(outcome(await signIn(owner.email, newPassword))).toBe('200');
  });

  it('is changed with a code where the second factor is on', async () => {
    const owner = await signUpGuarded();
    const change = async (code?: string) =>
      outcome(await owner.session.post(`${AUTH}/password/change`, { password: owner.password, newPassword, code }));
    expect(await change()).toBe('401 two_factor_required');
    expect(await change(owner.wrongCode())).toBe('400 bad_request');
    expect(await change(owner.nextCode())).toBe('200');
  });

  it('is reset once by a mailed link, which ends all sessions', async () => {
    const owner = await signUp();
    const forgot = (email: string) => sharedApi().post(`${AUTH}/password/forgot`, { email });
    const [known, unknown] = [await forgot(owner.email), await forgot(`${unique('unknown')}@example.com`)];
    expect([outcome(known), known.text]).toEqual(['200', unknown.text]);
    const { link, token } = await waitForMail(owner.email);
    expect(link).toBe(`http://localhost:${port}/reset-password#token=${token}`);
    const reset = async (body: object) => outcome(await sharedApi().post(`${AUTH}/password/reset`, body));
    expect(await reset({ token, newPassword: 'too short' })).toBe('400 VALIDATION_ERROR');
    expect(await reset({ token: 'not a token', newPassword })).toBe('400 bad_request');
    expect([await reset({ token, newPassword }), await reset({ token, newPassword })]).toEqual(['200', '400 bad_request']);
    expect(await isSignedIn(owner.cookie)).toBe('401 unauth');
    expect(outcome(await signIn(owner.email, newPassword))).toBe('200');
  });
});

it('an email is changed by the link that a mail takes to the new address', async () => {
  const [owner, other] = [await signUp(), await signUp()];
  const email = `${unique('new')}@example.com`;
  const change = async (body: object) => outcome(await owner.session.post(`${AUTH}/email/change`, body));
  expect(await change({ email, password: 'not the password' })).toBe('400 bad_request');
  expect(await change({ email: 'nowhere', password: owner.password })).toBe('400 VALIDATION_ERROR');
  expect(await change({ email: other.email, password: owner.password })).toBe('409 account_exists');
  expect(await change({ email, password: owner.password })).toBe('200');
  const { link, token } = await waitForMail(email);
  expect(link).toBe(`http://localhost:${port}/confirm-email#token=${token}`);
  const confirm = async ({ session } = owner) => outcome(await session.post(`${AUTH}/email/confirm`, { token }));
  expect(await confirm(other)).toBe('400 bad_request');
  expect([await confirm(), await confirm()]).toEqual(['200', '400 bad_request']);
  expect((await owner.session.get(`${AUTH}/session`)).data.account.email).toBe(email);
  for (let i = 0; i < 4; i += 1)
    expect(await change({ email: `${unique('new')}@example.com`, password: owner.password })).toBe('200');
  expect(await change({ email: `${unique('new')}@example.com`, password: owner.password })).toBe('429 rate_limit_reached');
});
