import { holdLocks, waitersForLocks } from '@latchkey/testkit/postgres/lock-waits';
import { refusalOf } from '@latchkey/testkit/refusal';
import { expect, test } from 'vitest';
import { openTestIdentity, outcomeOf } from '../testing/identity.ts';
import { PASSWORD, present, sessionCredential, signUpSomeone } from '../testing/sample.ts';
import { codeAt, guardSomeone, STEP_MS, sessionIdOf } from '../testing/two-factor.ts';

const identity = await openTestIdentity();
const { twoFactor, accounts } = identity;

const now = (secret: string) => codeAt(secret, identity.clock.now());
const isEnabled = async (accountId: string) => present((await accounts.getAccount({ accountId })).account).twoFactorEnabled;
const use = (token: string) => identity.authentication.authenticate({ credential: sessionCredential(token) });

test('a secret has no effect until it is enabled, and replaces an earlier one', async () => {
  const { account } = await signUpSomeone(identity);
  const accountId = account.id;
  const [first, second] = [await twoFactor.setUpTwoFactor({ accountId }), await twoFactor.setUpTwoFactor({ accountId })];
  expect(second.otpauthUrl).toContain(second.secret);
  expect(second.otpauthUrl).toContain(encodeURIComponent(account.email));
  expect((await twoFactor.verifyTwoFactorCode({ accountId, code: '123456' })).twoFactorEnabled).toBe(false);
  expect(await outcomeOf(accounts.signIn({ email: account.email, password: PASSWORD, code: '123456' }))).toBe('done');
  const enable = (code: string) => refusalOf(twoFactor.enableTwoFactor({ accountId, code }));
  const error = { reason: 'two_factor_code_invalid', kind: 'invalid', code: 'bad_request' };
  for (const code of ['', now(first.secret)]) expect(await enable(code)).toMatchObject(error);
  expect(await isEnabled(accountId)).toBe(false);
});

test('a set-up that waited for the deletion of the account finds none', async () => {
  const { account } = await signUpSomeone(identity);
  const release = await holdLocks(identity.db, 'delete from account where id = $1', [account.id]);
  const setUp = outcomeOf(twoFactor.setUpTwoFactor({ accountId: account.id }));
  await waitersForLocks(identity.db, 1);
  await release();
  expect(await setUp).toBe('account_not_found');
});

test('concurrent requests enable it once, with one code and ten recovery codes', async () => {
  const { account } = await signUpSomeone(identity);
  const { secret } = await twoFactor.setUpTwoFactor({ accountId: account.id });
  const code = now(secret);
  const enable = () => outcomeOf(twoFactor.enableTwoFactor({ accountId: account.id, code }));
  const outcomes = await Promise.all(Array.from({ length: 8 }, enable));
  expect(outcomes.sort()).toEqual(['done', ...Array(7).fill('two_factor_already_enabled')]);
  const { rows } = await identity.db.query('select from recovery_code where account_id = $1', [account.id]);
  expect(rows).toHaveLength(10);
  const error = { reason: 'two_factor_already_enabled', kind: 'invalid', code: 'bad_request' };
  expect(await refusalOf(twoFactor.setUpTwoFactor({ accountId: account.id }))).toMatchObject(error);
  const signIn = accounts.signIn({ email: account.email, password: PASSWORD, code });
  expect(await outcomeOf(signIn)).toBe('two_factor_code_invalid');
});

test('disabling it deletes all of it', async () => {
  const { accountId, code, signIn, recoveryCodes } = await guardSomeone(identity);
  const disable = (given = '') => twoFactor.disableTwoFactor({ accountId, password: PASSWORD, code: given });
  await disable(code());
  expect(await outcomeOf(signIn())).toBe('done');
  for (const table of ['two_factor', 'recovery_code']) {
    expect((await identity.db.query(`select from ${table} where account_id = $1`, [accountId])).rows).toHaveLength(0);
  }
  const error = { reason: 'two_factor_not_enabled', kind: 'invalid', code: 'bad_request' };
  expect(await refusalOf(disable(recoveryCodes[0]))).toMatchObject(error);
});

test('only a live session of the account enables it', async () => {
  const [{ account, session }, other] = [await signUpSomeone(identity), await signUpSomeone(identity)];
  const accountId = account.id;
  const [sessionId, stranger] = [await sessionIdOf(identity, session), await sessionIdOf(identity, other.session)];
  const { secret } = await twoFactor.setUpTwoFactor({ accountId });
  await accounts.signOutEverywhere({ accountId });
  const enable = (asking: string) => outcomeOf(twoFactor.enableTwoFactor({ accountId, sessionId: asking, code: now(secret) }));
  for (const asking of [sessionId, stranger, 'not-a-uuid']) expect(await enable(asking)).toBe('session_invalid');
  expect(await isEnabled(accountId)).toBe(false);
  const again = await accounts.signIn({ email: account.email, password: PASSWORD });
  expect(await enable(await sessionIdOf(identity, present(again.session)))).toBe('done');
});

test('enabling and disabling end the other sessions of the account on the next request', async () => {
  const [{ account, session }, bystander] = [await signUpSomeone(identity), await signUpSomeone(identity)];
  const proof = { accountId: account.id, sessionId: await sessionIdOf(identity, session) };
  const { secret } = await twoFactor.setUpTwoFactor(proof);
  const expectOthersToEnd = async (change: () => Promise<unknown>, code: string) => {
    const opened = await accounts.signIn({ email: account.email, password: PASSWORD, code });
    const { token } = present(opened.session);
    const { epochKey } = await use(token);
    await change();
    expect(await identity.redis.get(epochKey)).toBeNull();
    expect(await outcomeOf(use(token))).toBe('session_invalid');
    for (const other of [session.token, bystander.session.token]) expect(await outcomeOf(use(other))).toBe('done');
  };
  let recoveryCodes: string[] = [];
  const enable = async () => {
    recoveryCodes = (await twoFactor.enableTwoFactor({ ...proof, code: now(secret) })).recoveryCodes;
  };
  await expectOthersToEnd(enable, '');
  identity.clock.advance(STEP_MS);
  const disable = () => twoFactor.disableTwoFactor({ ...proof, password: PASSWORD, code: now(secret) });
  await expectOthersToEnd(disable, present(recoveryCodes[0]));
});

test('a sign-in without a code opens no session where the second factor is turned on meanwhile', async () => {
  const { account } = await signUpSomeone(identity);
  const accountId = account.id;
  const { secret } = await twoFactor.setUpTwoFactor({ accountId });
  const release = await holdLocks(identity.db, 'select from two_factor where account_id = $1 for update', [accountId]);
  // It locks the account and waits for the second factor; the sign-in waits for the account.
  const enabled = twoFactor.enableTwoFactor({ accountId, code: now(secret) });
  await waitersForLocks(identity.db, 1);
  const outcome = outcomeOf(accounts.signIn({ email: account.email, password: PASSWORD }));
  await waitersForLocks(identity.db, 2);
  await release();
  await enabled;
  expect(await outcome).toBe('two_factor_required');
  expect((await identity.db.query('select from session where account_id = $1', [accountId])).rowCount).toBe(0);
});

test('a secret is encrypted for its account', async () => {
  const [mine, other] = [await guardSomeone(identity), await guardSomeone(identity)];
  const swap =
    'update two_factor set secret_sealed = (select secret_sealed from two_factor where account_id = $1) where account_id = $2';
  await identity.db.query(swap, [mine.accountId, other.accountId]);
  const call = twoFactor.verifyTwoFactorCode({ accountId: other.accountId, code: mine.code() });
  await expect(call).rejects.toMatchObject({ code: 13 });
});
