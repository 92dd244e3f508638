import { expect, test } from 'vitest';
import { openTestIdentity, outcomeOf } from '../testing/identity.ts';
import { PASSWORD, present, sessionCredential, signUpSomeone, someSignUp } from '../testing/sample.ts';
import { guardSomeone } from '../testing/two-factor.ts';

const identity = await openTestIdentity();

const use = (token: string) => identity.authentication.authenticate({ credential: sessionCredential(token) });
const openFor = async (email: string, previousSessionToken = '') =>
  present((await identity.accounts.signIn({ email, password: PASSWORD, previousSessionToken })).session).token;

test('signing out everywhere ends each session of the account on the next request', async () => {
  const { account, session } = await signUpSomeone(identity);
  const bystander = await signUpSomeone(identity);
  const tokens = [session.token, await openFor(account.email), await openFor(account.email)];
  const epochs = await Promise.all(tokens.map(async (token) => (await use(token)).epochKey));
  for (const key of epochs) expect(await identity.redis.get(key)).not.toBeNull();
  await identity.accounts.signOutEverywhere({ accountId: account.id });
  for (const key of epochs) expect(await identity.redis.get(key)).toBeNull();
  for (const token of tokens) expect(await outcomeOf(use(token))).toBe('session_invalid');
  expect(await outcomeOf(use(bystander.session.token))).toBe('done');
  expect(await outcomeOf(use(await openFor(account.email)))).toBe('done');
});

test('the previous session of a client ends with its next sign-in or sign-up', async () => {
  const { account, session } = await signUpSomeone(identity);
  const other = await signUpSomeone(identity);
  const { epochKey } = await use(session.token);
  const second = await openFor(account.email, session.token);
  expect(second).not.toBe(session.token);
  expect(await identity.redis.get(epochKey)).toBeNull();
  expect(await outcomeOf(use(session.token))).toBe('session_invalid');
  await openFor(account.email, other.session.token);
  expect(await outcomeOf(use(other.session.token))).toBe('session_invalid');
  await identity.accounts.signUp({ ...someSignUp(), previousSessionToken: second });
  expect(await outcomeOf(use(second))).toBe('session_invalid');
});

test('a rejected sign-in ends no session', async () => {
  const { account, session } = await signUpSomeone(identity);
  const guarded = await guardSomeone(identity);
  const previousSessionToken = session.token;
  const attempts = [
    identity.accounts.signIn({ email: account.email, password: 'wrong password', previousSessionToken }),
    identity.accounts.signIn({ email: guarded.account.email, password: PASSWORD, previousSessionToken }),
    identity.accounts.signIn({ email: guarded.account.email, password: PASSWORD, code: 'x', previousSessionToken }),
    identity.accounts.signUp({ ...someSignUp(), email: account.email, previousSessionToken }),
  ];
  const outcomes = await Promise.all(attempts.map(outcomeOf));
  expect(outcomes).toEqual(['sign_in_failed', 'two_factor_required', 'two_factor_code_invalid', 'account_exists']);
  expect(await outcomeOf(use(session.token))).toBe('done');
});
