import { randomUUID } from 'node:crypto';
import { OPERATOR } from '@latchkey/audit/actor';
import { AS_CALLER, auditReader } from '@latchkey/audit/testing/audit-reader';
import { createLogger } from '@latchkey/kit/log/logger';
import { holdLocks } from '@latchkey/testkit/postgres/lock-waits';
import { expect, test } from 'vitest';
import { outcomeOf } from '../testing/identity.ts';
import { REDIRECT_URI } from '../testing/issuer.ts';
import { openTestOidc } from '../testing/oidc-flow.ts';
import { PASSWORD, signUpSomeone } from '../testing/sample.ts';
import { guardSomeone } from '../testing/two-factor.ts';
import { createCredentialFailureLog } from './credential-failures.ts';

const { identity, issuer } = await openTestOidc();
const entriesOf = auditReader(identity.service.routes);
const reasonsOf = async (accountId: string, action: string) =>
  (await entriesOf(accountId)).filter((entry) => entry.action === action).map(({ changes }) => changes.reason);

/** A client without a credential, as the gateway names it. */
const ANONYMOUS = { headers: { 'x-latchkey-actor': 'anonymous - 203.0.113.9' } };

test('failures are recorded in the background, 20 an hour of each reason, and across processes', async () => {
  const { account } = await signUpSomeone(identity);
  const guarded = await guardSomeone(identity);
  for (let round = 0; round < 2; round += 1) {
    const own = identity.connect();
    const signIn = (email: string, password: string, code = '') =>
      outcomeOf(own.accounts.signIn({ email, password, code }, ANONYMOUS));
    await Promise.all(Array.from({ length: 15 }, () => signIn(account.email, 'not the password')));
    expect((await entriesOf(account.id)).length).toBe(round === 0 ? 1 : 16);
    for (let i = 0; i < 6; i += 1) await signIn(guarded.account.email, PASSWORD, guarded.wrongCode());
    await signIn('unknown@example.test', 'not the password');
    await own.service.stop();
  }
  expect(await reasonsOf(account.id, 'account.sign_in_failed')).toEqual(Array(20).fill('wrong_password'));
  expect((await entriesOf(account.id)).at(-1)).toMatchObject({ actor: 'anonymous', address: '203.0.113.9' });
  const reasons = [...Array(5).fill('wrong_code'), ...Array(7).fill('too_many_codes')];
  expect(await reasonsOf(guarded.accountId, 'account.sign_in_failed')).toEqual(reasons);
});

test('failures within a session are recorded apart from those of sign-in', async () => {
  const own = identity.connect({ env: issuer.env() });
  const { account } = await signUpSomeone(identity);
  const request = { issuer: 'test', redirectUri: REDIRECT_URI, linkAccountId: account.id };
  const link = (password: string) => outcomeOf(own.oidc.startOidc({ ...request, password }, AS_CALLER));
  expect(await link('')).toBe('password_missing');
  for (let i = 0; i < 12; i += 1) await link(`guess ${i}`);
  await outcomeOf(own.accounts.signIn({ email: account.email, password: 'a guess' }, ANONYMOUS));
  const guarded = await guardSomeone(identity);
  await outcomeOf(own.twoFactor.verifyTwoFactorCode({ ...guarded, code: guarded.wrongCode() }, AS_CALLER));
  await outcomeOf(own.twoFactor.disableTwoFactor({ ...guarded, password: 'a guess', code: 'x' }, AS_CALLER));
  await own.service.stop();
  const reasons = [...Array(10).fill('wrong_password'), ...Array(2).fill('too_many_passwords')];
  expect(await reasonsOf(account.id, 'account.proof_failed')).toEqual(reasons);
  expect(await reasonsOf(account.id, 'account.sign_in_failed')).toEqual(['wrong_password']);
  expect(await reasonsOf(guarded.accountId, 'account.proof_failed')).toEqual(['wrong_code', 'wrong_password']);
});

test('failures are bounded and correctly dated while the database is slow', async () => {
  const logger = createLogger('identity', 'silent');
  const log = createCredentialFailureLog(identity.kysely, logger, 5);
  const all: string[] = [];
  const fail = (count: number) => {
    const accountIds = Array.from({ length: count }, () => randomUUID());
    for (const accountId of accountIds) {
      log.record({ accountId, action: 'account.sign_in_failed', reason: 'wrong_password', origin: OPERATOR });
    }
    void log.flush();
    all.push(...accountIds);
    return accountIds.slice(0, 5);
  };
  const release = await holdLocks(identity.db, 'lock table audit_entry');
  const first = fail(8);
  const { rows: times } = await identity.db.query('select clock_timestamp() as now');
  const accountIds = [...first, ...fail(8)];
  await release('select pg_sleep(1)');
  await log.flush();
  const written = 'select account_id, at from audit_entry where account_id = any($1)';
  const { rows } = await identity.db.query(written, [all]);
  expect(rows.map(({ account_id }) => account_id).sort()).toEqual(accountIds.sort());
  for (const { at } of rows) expect(at.getTime()).toBeLessThan(times[0].now.getTime() + 500);
});
