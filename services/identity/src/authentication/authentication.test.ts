import { randomBytes } from 'node:crypto';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { expect, test } from 'vitest';
import { createApiKeyText } from '../api-key/api-key-text.ts';
import { MINUTE_MS, openTestIdentity, outcomeOf, refusalOf } from '../testing/identity.fixture.ts';
import { createSomeKey, keyCredential, sessionCredential, signUpSomeone, someAccountId } from '../testing/sample.fixture.ts';

const identity = await openTestIdentity();

const use = (plaintextKey: string, clientIp = '') =>
  identity.authentication.authenticate({ credential: keyCredential(plaintextKey), clientIp });
const inAMinute = () => timestampFromDate(new Date(identity.clock.now().getTime() + MINUTE_MS));

test('a key’s principal has what its owner gave the key', async () => {
  const accountId = await someAccountId(identity);
  const applicationIds = identity.apps.createApplications(accountId, 2);
  const settings = { scopes: ['files:read'], allApplications: false, applicationIds, expiresAt: inAMinute() };
  const { apiKey, plaintextKey } = await createSomeKey(identity, { ...settings, accountId });
  const { principal } = await use(plaintextKey);
  expect(principal).toMatchObject({ ...settings, kind: 1, accountId, credentialId: apiKey.id, csrfToken: '' });
});

test('a principal has the username of its account, whatever the credential', async () => {
  const { account, session } = await signUpSomeone(identity);
  const { plaintextKey } = await createSomeKey(identity, { accountId: account.id });
  const bySession = await identity.authentication.authenticate({ credential: sessionCredential(session.token) });
  for (const { principal } of [await use(plaintextKey), bySession]) {
    expect(principal).toMatchObject({ accountId: account.id, username: account.username });
  }
});

test('unknown, forged and wrong keys are refused with one answer', async () => {
  const { plaintextKey } = await createSomeKey(identity);
  const keys = [await someWrongKey(), createApiKeyText(randomBytes).text, `${plaintextKey}x`, plaintextKey.slice(0, -1), ''];
  const refusals = await Promise.all(keys.map((key) => refusalOf(use(key))));
  expect(refusals[0]).toMatchObject({ reason: 'api_key_invalid', kind: 'unauthenticated', code: 'api_key_invalid' });
  for (const refusal of refusals) expect(refusal).toEqual(refusals[0]);
});

test('a key ends at its expiry', async () => {
  const { plaintextKey } = await createSomeKey(identity, { expiresAt: inAMinute() });
  identity.clock.advance(MINUTE_MS - 1);
  expect(await outcomeOf(use(plaintextKey))).toBe('done');
  identity.clock.advance(1);
  const refusal = await refusalOf(use(plaintextKey));
  expect(refusal).toMatchObject({ reason: 'api_key_expired', kind: 'unauthenticated', code: 'api_key_expired' });
});

test('a key that was revoked and has expired is refused as revoked', async () => {
  const { accountId, apiKey, plaintextKey } = await createSomeKey(identity, { expiresAt: inAMinute() });
  await identity.apiKeys.revokeApiKey({ accountId, apiKeyId: apiKey.id });
  identity.clock.advance(MINUTE_MS);
  const refusal = await refusalOf(use(plaintextKey));
  expect(refusal).toMatchObject({ reason: 'api_key_revoked', kind: 'unauthenticated', code: 'api_key_revoked' });
});

test('text that was never a key or a token is refused without a look-up', async () => {
  const env = { DATABASE_URL: 'postgres://localhost:1/none', REDIS_URL: 'redis://localhost:1' };
  const { authentication } = await identity.connect({ env });
  const outcome = (credential: ReturnType<typeof keyCredential> | ReturnType<typeof sessionCredential>) =>
    outcomeOf(authentication.authenticate({ credential }));
  const { text } = createApiKeyText(randomBytes);
  const forged = text.slice(0, -1) + (text.endsWith('0') ? '1' : '0');
  for (const never of [forged, 'lk_mgmt_', '', '\0', '\ud800', 'x'.repeat(100_000)]) {
    expect(await outcome(keyCredential(never))).toBe('api_key_invalid');
    expect(await outcome(sessionCredential(never))).toBe('session_invalid');
  }
  expect(await outcome(keyCredential(text))).toBe('dependency_unavailable');
  expect(await outcome(sessionCredential(randomBytes(32).toString('base64url')))).toBe('dependency_unavailable');
});

test('an absent credential, an unknown token and a key in the place of a token are no session', async () => {
  const { plaintextKey } = await createSomeKey(identity);
  const { session } = await signUpSomeone(identity);
  const unknown = randomBytes(32).toString('base64url');
  const refusals = [await refusalOf(identity.authentication.authenticate({}))];
  for (const token of [unknown, plaintextKey, `${session.token}=`]) {
    refusals.push(await refusalOf(identity.authentication.authenticate({ credential: sessionCredential(token) })));
  }
  expect(refusals[0]).toMatchObject({ reason: 'session_invalid', kind: 'unauthenticated', code: 'unauth' });
  for (const refusal of refusals) expect(refusal).toEqual(refusals[0]);
});

/** A key whose public part is known and whose secret is not the right one, since it was made under another pepper. */
async function someWrongKey(endedBy?: 'revoked_at' | 'expires_at'): Promise<string> {
  const elsewhere = await identity.connect({ env: { SECRET_KEY: 'another-secret-key-of-32-characters' } });
  const { apiKey, plaintextKey } = await createSomeKey(elsewhere);
  if (endedBy) await identity.db.query(`update api_key set ${endedBy} = created_at where id = $1`, [apiKey.id]);
  return plaintextKey;
}
