import { explain, statementsOf } from '@latchkey/testkit/postgres/statements';
import { beforeAll, expect, test } from 'vitest';
import { MINUTE_MS, outcomeOf } from '../testing/identity.ts';
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
const TABLES = ['account', 'session', 'api_key', 'two_factor', 'recovery_code', 'mail', 'trusted_issuer', 'daily_requests'];

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
  await client.query(`insert into daily_requests (api_key_id, day, requests) select id, current_date, 1 from api_key`);
  await client.query('analyze');
  client.release();
});

test('no call scans a table sequentially', async () => {
  const instance = identity.connect();
  const sent = await statementsOf(async () => {
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
  const found = new Set<string | undefined>();
  for (const statement of sent.filter(({ text }) => /^\s*(select|update|delete|with)\b/.test(text))) {
    for (const node of await explain(identity.db, statement)) {
      if (!TABLES.includes(node['Relation Name'] ?? '')) continue;
      expect({ text: statement.text, node: node['Node Type'] }).not.toMatchObject({ node: 'Seq Scan' });
      found.add(node['Relation Name']);
    }
  }
  expect([...found].sort()).toEqual(TABLES.toSorted());
});
