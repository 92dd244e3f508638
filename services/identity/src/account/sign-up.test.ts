import { whileFailing } from '@latchkey/audit/testing/failing-table';
import { refusalOf } from '@latchkey/testkit/refusal';
import { expect, test } from 'vitest';
import { openTestIdentity, outcomeOf } from '../testing/identity.ts';
import { PASSWORD, present, sessionCredential, someSignUp } from '../testing/sample.ts';

const identity = await openTestIdentity();

test('sign-up answers the account as it was written, and a session of it', async () => {
  const request = { username: 'Ada_Lovelace-1', email: 'Ada@Example.test', password: PASSWORD };
  const { account, session } = await identity.accounts.signUp(request);
  expect(account).toMatchObject({ username: 'Ada_Lovelace-1', email: 'Ada@Example.test', twoFactorEnabled: false });
  expect(account?.pictureUrl).toBeUndefined();
  const credential = sessionCredential(present(session).token);
  const { principal } = await identity.authentication.authenticate({ credential });
  expect(principal).toMatchObject({ accountId: account?.id, csrfToken: session?.csrfToken });
});

const host = ['b', 'c', 'd'].map((letter) => letter.repeat(60)).join('.');

test.each([
  ['a username of 2 characters', { username: 'ab' }],
  ['a username of 33 characters', { username: 'a'.repeat(33) }],
  ['a username with a space', { username: 'with space' }],
  ['a username with another letter', { username: 'naïve' }],
  ['a username with a line break at its end', { username: 'alice\n' }],
  ['an email without @', { email: 'example.test' }],
  ['an email with two @', { email: 'two@@example.test' }],
  ['an email with a space', { email: 'a@b c' }],
  ['an email of 255 characters', { email: `${'a'.repeat(72)}@${host}` }],
  ['a password of 9 code points', { password: '😀'.repeat(9) }],
  ['a password of 129 code points', { password: 'p'.repeat(129) }],
  ['a password with a NUL', { password: `${PASSWORD}\0` }],
  ['a password with half a surrogate pair', { password: `${PASSWORD}\ud800` }],
  ['an email of another script', { email: 'почта@пример.test' }],
])('sign-up rejects %s', async (_what, part) => {
  const refusal = await refusalOf(identity.accounts.signUp({ ...someSignUp(), ...part }));
  expect(refusal).toMatchObject({ reason: 'sign_up_invalid', kind: 'malformed', code: 'VALIDATION_ERROR' });
});

test.each([
  ['a username of 3 characters', { username: 'x_-' }],
  ['a username of 32 characters', { username: 'x'.repeat(32) }],
  ['an email of 254 characters', { email: `${'a'.repeat(71)}@${host}` }],
  ['an email at a host without dots', { email: 'root@localhost' }],
  ['a password of 10 code points', { password: '😀'.repeat(10) }],
  ['a password of 128 code points', { password: '😀'.repeat(128) }],
])('sign-up takes %s', async (_what, part) => {
  const request = { ...someSignUp(), ...part };
  expect(await outcomeOf(identity.accounts.signUp(request))).toBe('done');
  expect(await outcomeOf(identity.accounts.signIn(request))).toBe('done');
});

test('sign-up rejects a username and an email that are taken in another case, with one answer', async () => {
  const taken = someSignUp();
  await identity.accounts.signUp(taken);
  const byName = await refusalOf(identity.accounts.signUp({ ...someSignUp(), username: taken.username.toUpperCase() }));
  const byEmail = await refusalOf(identity.accounts.signUp({ ...someSignUp(), email: taken.email.toUpperCase() }));
  expect(byName).toMatchObject({ reason: 'account_exists', kind: 'conflict', code: 'account_exists' });
  expect(byEmail).toEqual(byName);
});

test.each(['username', 'email'] as const)('one of many concurrent sign-ups gets a %s', async (field) => {
  const { [field]: wanted } = someSignUp();
  const attempts = Array.from({ length: 12 }, (_, i) =>
    outcomeOf(identity.accounts.signUp({ ...someSignUp(), [field]: i % 2 === 0 ? wanted : wanted.toUpperCase() })),
  );
  expect((await Promise.all(attempts)).sort()).toEqual([...Array(11).fill('account_exists'), 'done']);
});

test('no account is left behind when its session could not be stored', async () => {
  const request = someSignUp();
  await whileFailing(identity.db, { table: 'session' }, () => expect(identity.accounts.signUp(request)).rejects.toThrow());
  expect(await outcomeOf(identity.accounts.signUp(request))).toBe('done');
});

test('sign-up is rejected where it is closed', async () => {
  const closed = identity.connect({ env: { SIGN_UP: 'closed' } });
  const refusal = await refusalOf(closed.accounts.signUp(someSignUp()));
  expect(refusal).toMatchObject({ reason: 'sign_up_closed', kind: 'forbidden', code: 'sign_up_closed' });
});
