import { eventually } from '@latchkey/testkit/eventually';
import { beforeAll, expect, test } from 'vitest';
import { MINUTE_MS, outcomeOf, type TestInstance } from '../testing/identity.ts';
import {
  createSomeKey,
  keyCredential,
  OPEN_KEY,
  PASSWORD,
  sessionCredential,
  signUpSomeone,
  someSignUp,
} from '../testing/sample.ts';
import { openTokenIssuer } from '../testing/token-issuer.ts';
import { guardSomeone } from '../testing/two-factor.ts';

const mail = { SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'latchkey@example.test' };
const { identity, settings, sign, claims } = await openTokenIssuer(mail);

const ROWS = 5_000;
const TABLES = [
  'account',
  'session',
  'api_key',
  'two_factor',
  'recovery_code',
  'mail',
  'trusted_issuer',
  'used_token',
  'daily_requests',
];

beforeAll(async () => {
  const client = await identity.db.connect();
  await client.query(
    `insert into account (id, username, email, password_hash, created_at)
     select gen_random_uuid(), 'filler-' || i, 'filler-' || i || '@example.test', '-', now() from generate_series(1, $1) i`,
    [ROWS],
  );
  await client.query(
    `insert into session (id, account_id, token_hash, created_at, last_seen_at, expires_at)
     select gen_random_uuid(), id, sha256(username::bytea), now(), now(), now() from account`,
  );
  await client.query(
    `insert into api_key (id, account_id, name, public_id, key_hash, key_last4, scopes, all_applications, application_ids,
       created_at, updated_at)
     select gen_random_uuid(), id, 'Filler', username, '-', '-', '{files:read}', true, '{}', now(), now() from account`,
  );
  await client.query(
    `insert into two_factor (account_id, secret_sealed, enabled_at, created_at) select id, '-', now(), now() from account`,
  );
  await client.query(`insert into recovery_code (account_id, code_hash) select id, '-' from account`);
  await client.query(
    `insert into mail (id, kind, account_id, recipient, token_hash, created_at, expires_at)
     select gen_random_uuid(), 'email_change', id, email, sha256(email::bytea), now(), now() from account`,
  );
  await client.query(
    `insert into trusted_issuer (id, account_id, name, issuer, audience, claims, lookup_hash, scopes, all_applications,
       application_ids, lifetime_seconds, created_at)
     select gen_random_uuid(), id, 'Filler', 'filler', 'filler', '{filler}', sha256(username::bytea), '{files:read}', true, '{}',
       60, now() from account`,
  );
  await client.query(`insert into used_token (token_hash, expires_at) select sha256(username::bytea), now() from account`);
  await client.query(`insert into daily_requests (api_key_id, day, requests) select id, current_date, 1 from api_key`);
  await client.query('analyze');
  // Or the scans that the filling made would be counted up to a second later, as some test's.
  await client.query('select pg_stat_force_next_flush()');
  client.release();
});

/** Scans of each table since its creation. */
async function scans(): Promise<Record<string, { readonly whole: number; readonly byIndex: number }>> {
  const { rows } = await identity.db.query(
    `select relname, seq_scan::int, coalesce(idx_scan, 0)::int as idx_scan from pg_stat_user_tables where relname = any ($1)`,
    [TABLES],
  );
  return Object.fromEntries(rows.map((row) => [row.relname, { whole: row.seq_scan, byIndex: row.idx_scan }]));
}

/** Process ids of the connections of all instances. */
async function connections(): Promise<number[]> {
  const { rows } = await identity.db.query(
    `select pid from pg_stat_activity where datname = current_database() and application_name = 'latchkey-identity'`,
  );
  return rows.map(({ pid }) => pid);
}

/** Runs calls on an instance of their own, and says how often they scanned each table. */
async function scansOf(run: (instance: TestInstance) => Promise<unknown>) {
  const [before, others] = [await scans(), await connections()];
  const instance = identity.connect();
  await run(instance);
  const own = (await connections()).filter((pid) => !others.includes(pid));
  await instance.service.stop();
  // The counters of a connection are complete once it is gone.
  await eventually(async () => !(await connections()).some((pid) => own.includes(pid)));
  const after = await scans();
  return TABLES.map((table) => ({
    table,
    whole: (after[table]?.whole ?? 0) - (before[table]?.whole ?? 0),
    byIndex: (after[table]?.byIndex ?? 0) - (before[table]?.byIndex ?? 0),
  }));
}

test('no call scans a table sequentially', async () => {
  const counted = await scansOf(async (instance) => {
    const { accounts, apiKeys, authentication, credentials, trustedIssuers, twoFactor } = instance;
    const { account, session } = await signUpSomeone(instance);
    const guarded = await guardSomeone({ ...identity, ...instance });
    await guarded.signIn(guarded.code());
    await twoFactor.verifyTwoFactorCode({ accountId: guarded.accountId, code: guarded.recoveryCodes[0] ?? '' });
    await accounts.signOutEverywhere({ accountId: guarded.accountId });
    const both = { accountId: guarded.accountId, password: PASSWORD, code: guarded.recoveryCodes[1] ?? '' };
    await twoFactor.disableTwoFactor(both);
    await accounts.signIn({ email: account.email, password: PASSWORD });
    await accounts.getAccount({ accountId: account.id });
    const key = await createSomeKey(instance, { accountId: account.id });
    const ref = { accountId: account.id, apiKeyId: key.apiKey.id };
    await apiKeys.listApiKeys(ref);
    await apiKeys.updateApiKey({ ...ref, name: 'Renamed' });
    await authentication.authenticate({ credential: keyCredential(key.plaintextKey), clientIp: '192.0.2.1' });
    await apiKeys.recordApiKeyRequests({ counts: [{ apiKeyId: key.apiKey.id, requests: 1 }] });
    await apiKeys.listApiKeyRequests({ ...ref, days: 90 });
    await apiKeys.revokeApiKey(ref);
    identity.clock.advance(MINUTE_MS);
    const { principal } = await authentication.authenticate({ credential: sessionCredential(session.token) });
    await accounts.signOut({ accountId: account.id, sessionId: principal?.credentialId ?? '' });
    expect(await outcomeOf(apiKeys.createApiKey({ ...OPEN_KEY, accountId: account.id }))).toBe('done');
    await credentials.startPasswordReset({ email: account.email });
    const owner = { accountId: account.id, password: PASSWORD };
    await credentials.startEmailChange({ ...owner, email: someSignUp().email });
    await credentials.changePassword({ ...owner, newPassword: PASSWORD });
    const { trustedIssuer } = await trustedIssuers.createTrustedIssuer({ ...settings, accountId: account.id });
    await trustedIssuers.exchangeToken({ subjectToken: await sign(claims()) });
    await trustedIssuers.listTrustedIssuers({ accountId: account.id });
    await trustedIssuers.deleteTrustedIssuer({ accountId: account.id, trustedIssuerId: trustedIssuer?.id ?? '' });
    const token = 'x'.repeat(32);
    expect(await outcomeOf(credentials.resetPassword({ token, newPassword: PASSWORD }))).toBe('link_invalid');
  });
  expect(counted).toMatchObject(TABLES.map((table) => ({ table, whole: 0 })));
  for (const { byIndex } of counted) expect(byIndex).toBeGreaterThan(0);
});
