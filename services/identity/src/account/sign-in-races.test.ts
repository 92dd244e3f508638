import { eventually } from '@latchkey/testkit/eventually';
import { expect, test } from 'vitest';
import { openTestIdentity, outcomeOf, waitersForLocks } from '../testing/identity.ts';
import { PASSWORD, signUpSomeone } from '../testing/sample.ts';
import { codeAt } from '../testing/two-factor.ts';

/** A sign-in that began before its account changed is held to what the account has become. */
const identity = await openTestIdentity();

/** Runs a sign-in that verifies the password before a change and locks the account after it. */
async function signInDuring(
  account: { id: string; email: string },
  change: (query: (sql: string) => Promise<unknown>) => Promise<void>,
) {
  const client = await identity.db.connect();
  try {
    await client.query('begin');
    await change((sql) => client.query(sql, [account.id]));
    const outcome = outcomeOf(identity.accounts.signIn({ email: account.email, password: PASSWORD }));
    await eventually(() => waitersForLocks(identity, 1));
    await client.query('commit');
    return await outcome;
  } finally {
    client.release(true);
  }
}

const sessionsOf = async (accountId: string) =>
  (await identity.db.query('select from session where account_id = $1', [accountId])).rows.length;

test('with a password that was reset meanwhile opens nothing', async () => {
  const { account } = await signUpSomeone(identity);
  const outcome = await signInDuring(account, async (query) => {
    await query(`update account set password_hash = 'another' where id = $1`);
    await query('delete from session where account_id = $1');
  });
  expect(outcome).toBe('sign_in_failed');
  expect(await sessionsOf(account.id)).toBe(0);
});

test('without a code opens nothing where the second factor is switched on meanwhile', async () => {
  const { account } = await signUpSomeone(identity);
  const accountId = account.id;
  const { secret } = await identity.twoFactor.setUpTwoFactor({ accountId });
  const client = await identity.db.connect();
  await client.query('begin');
  await client.query('select from two_factor where account_id = $1 for update', [accountId]);
  // It locks the account and waits for the second factor; the sign-in waits for the account.
  const enabled = identity.twoFactor.enableTwoFactor({ accountId, code: codeAt(secret, identity.clock.now()) });
  await eventually(() => waitersForLocks(identity, 1));
  const outcome = outcomeOf(identity.accounts.signIn({ email: account.email, password: PASSWORD }));
  await eventually(() => waitersForLocks(identity, 2));
  await client.query('commit');
  client.release();
  await enabled;
  expect(await outcome).toBe('two_factor_required');
  expect(await sessionsOf(accountId)).toBe(0);
});
