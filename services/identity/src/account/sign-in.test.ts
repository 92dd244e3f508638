import { createTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { testRedis } from '@latchkey/testkit/redis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { migrateIdentity, outcomeOf, refusalOf, startTestIdentity, type TestIdentity } from '../testing/identity.fixture.ts';
import { PASSWORD, signUpSomeone, someSignUp } from '../testing/sample.fixture.ts';
import { createPasswords, type Passwords } from './password.ts';

let database: TestDatabase;
let identity: TestIdentity;

beforeAll(async () => {
  database = await createTestDatabase({ schema: 'identity', migrate: migrateIdentity });
  identity = await startTestIdentity({ databaseUrl: database.url, redisUrl: (await testRedis()).url });
});
afterAll(async () => {
  await identity.stop();
  await database.drop();
});

test('sign-in takes the email in any case and opens a session of its own each time', async () => {
  const { email } = (await signUpSomeone(identity)).account;
  const first = await identity.accounts.signIn({ email, password: PASSWORD });
  const second = await identity.accounts.signIn({ email: email.toUpperCase(), password: PASSWORD });
  expect(second.account).toEqual(first.account);
  expect(second.session?.token).not.toBe(first.session?.token);
  expect(second.session?.csrfToken).not.toBe(first.session?.csrfToken);
});

test('sign-in refuses an unknown email and a wrong password with one answer, after the same work', async () => {
  const verified: Array<string | undefined> = [];
  const real = createPasswords({ atOnce: 2, waitingMax: 10 });
  const passwords: Passwords = {
    hash: real.hash,
    verify(stored, password) {
      verified.push(stored);
      return real.verify(stored, password);
    },
  };
  const { accounts } = await identity.connect({ passwords });
  const { email } = (await signUpSomeone(identity)).account;
  const wrong = await refusalOf(accounts.signIn({ email, password: `${PASSWORD}!` }));
  const unknown = await refusalOf(accounts.signIn({ email: `x${email}`, password: PASSWORD }));
  expect(wrong).toMatchObject({ reason: 'sign_in_failed', kind: 'unauthenticated', code: 'unauth' });
  expect(unknown).toEqual(wrong);
  expect(verified).toEqual([expect.stringMatching(/^\$argon2id/), undefined]);
});

test('an account without a password is refused as an unknown email is, after the same work, whatever the password', async () => {
  const verified: Array<string | undefined> = [];
  const passwords: Passwords = {
    hash: () => Promise.reject(new Error('nothing to hash')),
    async verify(stored) {
      verified.push(stored);
      return false;
    },
  };
  const { accounts } = await identity.connect({ passwords });
  const { email, id } = (await signUpSomeone(identity)).account;
  await identity.db.query('update account set password_hash = null where id = $1', [id]);
  const unknown = await refusalOf(accounts.signIn({ email: `x${email}`, password: PASSWORD }));
  expect(await refusalOf(accounts.signIn({ email, password: PASSWORD }))).toEqual(unknown);
  expect(verified).toEqual([undefined, undefined]);
  expect(await outcomeOf(identity.accounts.signIn({ email, password: PASSWORD }))).toBe('sign_in_failed');
});

test('a password against no account is verified like any other, and is wrong', async () => {
  const passwords = createPasswords({ atOnce: 1, waitingMax: 0 });
  await expect(passwords.verify(undefined, PASSWORD)).resolves.toBe(false);
  await expect(passwords.verify(undefined, '')).resolves.toBe(false);
});

test.each([
  ['an empty email', { email: '' }],
  ['an email of 255 characters', { email: 'e'.repeat(255) }],
  ['an email with a NUL', { email: 'a\0@example.test' }],
  ['an empty password', { password: '' }],
  ['a password of 129 code points', { password: 'p'.repeat(129) }],
  ['a password with half a surrogate pair', { password: `${PASSWORD}\ud800` }],
])('sign-in refuses %s', async (_what, part) => {
  const { email } = (await signUpSomeone(identity)).account;
  const refusal = await refusalOf(identity.accounts.signIn({ email, password: PASSWORD, ...part }));
  expect(refusal).toMatchObject({ reason: 'sign_in_invalid', kind: 'malformed', code: 'VALIDATION_ERROR' });
});

test('sign-in takes a password that another keyboard composes differently', async () => {
  const request = { ...someSignUp(), password: 'cre\u0300me bru\u0302le\u0301e' };
  await identity.accounts.signUp(request);
  expect(await outcomeOf(identity.accounts.signIn({ email: request.email, password: 'crème brûlée' }))).toBe('done');
});

test('more passwords than may wait are refused as unavailable, and the next one is taken again', async () => {
  const { accounts } = await identity.connect({ env: { PASSWORD_HASHES_AT_ONCE: '1', PASSWORD_HASHES_WAITING: '2' } });
  const attempts = Array.from({ length: 10 }, () => outcomeOf(accounts.signUp(someSignUp())));
  expect((await Promise.all(attempts)).sort()).toEqual([...Array(7).fill('dependency_unavailable'), ...Array(3).fill('done')]);
  expect(await outcomeOf(accounts.signUp(someSignUp()))).toBe('done');
});

test('an account is answered by its id', async () => {
  const { account } = await signUpSomeone(identity);
  expect((await identity.accounts.getAccount({ accountId: account.id })).account).toEqual(account);
});

test.each(['01a1fa3f-b3c3-743f-b08f-2741f24621e5', 'not-a-uuid', ''])('an account is not found by %j', async (accountId) => {
  const refusal = await refusalOf(identity.accounts.getAccount({ accountId }));
  expect(refusal).toMatchObject({ reason: 'account_not_found', kind: 'not_found', code: 'not_found' });
});
