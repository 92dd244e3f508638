import { refusalOf } from '@latchkey/testkit/refusal';
import { expect, test } from 'vitest';
import { DAY_MS, openTestIdentity, outcomeOf } from '../testing/identity.ts';
import { PASSWORD, present, sessionCredential, signUpSomeone, someSignUp } from '../testing/sample.ts';
import { guardSomeone } from '../testing/two-factor.ts';

const identity = await openTestIdentity();

const use = (token: string) => identity.authentication.authenticate({ credential: sessionCredential(token) });

test('a session unused for 7 days has ended', async () => {
  const [kept, left] = [await signUpSomeone(identity), await signUpSomeone(identity)];
  identity.clock.advance(7 * DAY_MS - 1);
  expect(await outcomeOf(use(kept.session.token))).toBe('done');
  identity.clock.advance(1);
  const refusal = await refusalOf(use(left.session.token));
  expect(refusal).toMatchObject({ reason: 'session_invalid', kind: 'unauthenticated', code: 'unauth' });
  expect(await outcomeOf(use(kept.session.token))).toBe('done');
});

test('a session used every day has ended after 30 days', async () => {
  const { session } = await signUpSomeone(identity);
  for (let day = 1; day < 30; day += 1) {
    identity.clock.advance(DAY_MS);
    expect(await outcomeOf(use(session.token))).toBe('done');
  }
  identity.clock.advance(DAY_MS - 1);
  expect(await outcomeOf(use(session.token))).toBe('done');
  identity.clock.advance(1);
  expect(await outcomeOf(use(session.token))).toBe('session_invalid');
});

test('a session that was signed out of is rejected on the next request, and its epoch is gone', async () => {
  const { account, session } = await signUpSomeone(identity);
  const { principal, epochKey, epoch } = await use(session.token);
  expect(await identity.redis.get(epochKey)).toBe(epoch);
  await identity.accounts.signOut({ accountId: account.id, sessionId: present(principal).credentialId });
  expect(await identity.redis.get(epochKey)).toBeNull();
  expect(await outcomeOf(use(session.token))).toBe('session_invalid');
});

test('signing out of an ended, absent or foreign session has no effect', async () => {
  const [mine, other] = [await signUpSomeone(identity), await signUpSomeone(identity)];
  const sessionId = present((await use(mine.session.token)).principal).credentialId;
  for (const accountId of [other.account.id, 'not-a-uuid', '']) await identity.accounts.signOut({ accountId, sessionId });
  for (const id of ['not-a-uuid', other.account.id]) {
    await identity.accounts.signOut({ accountId: mine.account.id, sessionId: id });
  }
  expect(await outcomeOf(use(mine.session.token))).toBe('done');
  await identity.accounts.signOut({ accountId: mine.account.id, sessionId });
  expect(await outcomeOf(identity.accounts.signOut({ accountId: mine.account.id, sessionId }))).toBe('done');
  expect(await outcomeOf(use(other.session.token))).toBe('done');
});

test('the CSRF token is the same as long as the session lives, and no other secret makes it', async () => {
  const { session } = await signUpSomeone(identity);
  expect((await use(session.token)).principal?.csrfToken).toBe(session.csrfToken);
  const elsewhere = identity.connect({ env: { SECRET_KEY: 'another-secret-key-of-32-characters' } });
  const { principal } = await elsewhere.authentication.authenticate({ credential: sessionCredential(session.token) });
  expect(principal?.csrfToken).toMatch(/^[\w-]{43}$/);
  expect(principal?.csrfToken).not.toBe(session.csrfToken);
});

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
