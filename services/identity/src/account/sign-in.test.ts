import { randomUUID } from 'node:crypto';
import { statementsOf } from '@latchkey/testkit/postgres/statements';
import { refusalOf } from '@latchkey/testkit/refusal';
import { expect, test } from 'vitest';
import { createTestPasswords, openTestIdentity } from '../testing/identity.ts';
import { PASSWORD, signUpSomeone } from '../testing/sample.ts';
import { guardSomeone } from '../testing/two-factor.ts';
import { createPasswords } from './password.ts';

const identity = await openTestIdentity();

test('sign-in accepts the email in any case and opens a new session each time', async () => {
  const { email } = (await signUpSomeone(identity)).account;
  const first = await identity.accounts.signIn({ email, password: PASSWORD });
  const second = await identity.accounts.signIn({ email: email.toUpperCase(), password: PASSWORD });
  expect(second.account).toEqual(first.account);
  expect(second.session?.token).not.toBe(first.session?.token);
  expect(second.session?.csrfToken).not.toBe(first.session?.csrfToken);
});

test.each([
  ['an empty email', { email: '' }],
  ['an email of 255 characters', { email: 'e'.repeat(255) }],
  ['an email with a NUL', { email: 'a\0@example.test' }],
  ['an empty password', { password: '' }],
  ['a password of 129 code points', { password: 'p'.repeat(129) }],
  ['a password with half a surrogate pair', { password: `${PASSWORD}\ud800` }],
])('sign-in rejects %s', async (_what, part) => {
  const { email } = (await signUpSomeone(identity)).account;
  const refusal = await refusalOf(identity.accounts.signIn({ email, password: PASSWORD, ...part }));
  expect(refusal).toMatchObject({ reason: 'sign_in_invalid', kind: 'malformed', code: 'VALIDATION_ERROR' });
});

/** So that the response time does not reveal which emails have accounts. */
test('every wrong email and password gets one error after the same work', async () => {
  const passwords = createTestPasswords();
  const { accounts } = identity.connect({ passwords });
  const { account } = await signUpSomeone(identity);
  const guarded = await guardSomeone(identity);
  const byIssuer = (await signUpSomeone(identity)).account;
  await identity.db.query('update account set password_hash = null where id = $1', [byIssuer.id]);
  const wrong = `${PASSWORD}!`;
  const attempts = {
    'an unknown email': { email: `${randomUUID()}@example.test`, password: PASSWORD },
    'an unknown email and a code': { email: `${randomUUID()}@example.test`, password: PASSWORD, code: '123456' },
    'an invalid email': { email: 'no address', password: PASSWORD },
    'a wrong password': { email: account.email, password: wrong },
    'a wrong password and a code': { email: account.email, password: wrong, code: '123456' },
    'a wrong password where there is a second factor': { email: guarded.account.email, password: wrong },
    'a wrong password and the right code': { email: guarded.account.email, password: wrong, code: guarded.code() },
    'a password where the account has none': { email: byIssuer.email, password: PASSWORD },
  };
  const work = new Map<string, unknown>();
  for (const [what, attempt] of Object.entries(attempts)) {
    passwords.verified = 0;
    let outcome: unknown;
    const statements = await statementsOf(async () => {
      outcome = await refusalOf(accounts.signIn(attempt));
    });
    work.set(what, { outcome, verified: passwords.verified, statements: statements.map(({ text }) => text) });
  }
  const [first] = work.values();
  expect(first).toEqual({
    outcome: expect.objectContaining({ reason: 'sign_in_failed', kind: 'unauthenticated', code: 'unauth' }),
    verified: 1,
    statements: [expect.stringContaining('from account ')],
  });
  for (const [what, done] of work) expect(done, what).toEqual(first);
});

test('a password is hashed also where there is no account', async () => {
  const passwords = createPasswords();
  const verified = passwords.verify(undefined, PASSWORD);
  const soon = new Promise((resolve) => setImmediate(resolve, 'still hashing'));
  expect(await Promise.race([verified, soon])).toBe('still hashing');
  expect(await verified).toBe(false);
});
