import { randomBytes } from 'node:crypto';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { whileFailing } from '@latchkey/audit/testing/failing-table';
import { statementsOf } from '@latchkey/testkit/postgres/statements';
import { refusalOf } from '@latchkey/testkit/refusal';
import { expect, test } from 'vitest';
import { createApiKeyText } from '../api-key/api-key-text.ts';
import { MINUTE_MS, openTestIdentity, outcomeOf } from '../testing/identity.ts';
import { createSomeKey, keyCredential, type SomeKey, sessionCredential, signUpSomeone } from '../testing/sample.ts';

const identity = await openTestIdentity();

const use = (plaintextKey: string, clientIp = '') =>
  identity.authentication.authenticate({ credential: keyCredential(plaintextKey), clientIp });
const inAMinute = () => timestampFromDate(new Date(identity.clock.now().getTime() + MINUTE_MS));

test('a principal has the username of its account, and that of a key what its owner gave it', async () => {
  const { account, session } = await signUpSomeone(identity);
  const [accountId, username] = [account.id, account.username];
  const applicationIds = identity.apps.createApplications(accountId, 2);
  const settings = { scopes: ['files:read'], allApplications: false, applicationIds, expiresAt: inAMinute() };
  const { apiKey, plaintextKey } = await createSomeKey(identity, { ...settings, accountId });
  const { principal } = await use(plaintextKey);
  expect(principal).toMatchObject({ ...settings, kind: 1, accountId, username, credentialId: apiKey.id, csrfToken: '' });
  const bySession = await identity.authentication.authenticate({ credential: sessionCredential(session.token) });
  expect(bySession.principal).toMatchObject({ accountId, username });
});

test('unknown, forged and wrong keys are rejected with one answer', async () => {
  const { plaintextKey } = await createSomeKey(identity);
  const keys = [await someWrongKey(), createApiKeyText().text, `${plaintextKey}x`, plaintextKey.slice(0, -1), ''];
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

test('a key that was revoked and has expired is rejected as revoked', async () => {
  const { accountId, apiKey, plaintextKey } = await createSomeKey(identity, { expiresAt: inAMinute() });
  await identity.apiKeys.revokeApiKey({ accountId, apiKeyId: apiKey.id });
  identity.clock.advance(MINUTE_MS);
  const refusal = await refusalOf(use(plaintextKey));
  expect(refusal).toMatchObject({ reason: 'api_key_revoked', kind: 'unauthenticated', code: 'api_key_revoked' });
});

test('an absent credential, an unknown token and a key used as a token are not sessions', async () => {
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

/** A key with a stored public id and a wrong secret, made under another pepper. */
async function someWrongKey(): Promise<string> {
  const elsewhere = identity.connect({ env: { SECRET_KEY: 'another-secret-key-of-32-characters' } });
  return (await createSomeKey(elsewhere)).plaintextKey;
}

test('malformed keys and tokens cost no query, an unknown key the same one as a wrong key', async () => {
  const { text: unknown } = createApiKeyText();
  const mistyped = unknown.slice(0, -1) + (unknown.endsWith('0') ? '1' : '0');
  const queriesOf = async (credential: ReturnType<typeof keyCredential> | ReturnType<typeof sessionCredential>) => {
    const sent = await statementsOf(() => outcomeOf(identity.authentication.authenticate({ credential })));
    return sent.map(({ text }) => text);
  };
  for (const malformed of [mistyped, 'lk_mgmt_', '', '\0', 'x'.repeat(100_000)]) {
    expect(await queriesOf(keyCredential(malformed))).toEqual([]);
    expect(await queriesOf(sessionCredential(malformed))).toEqual([]);
  }
  const queries = await queriesOf(keyCredential(await someWrongKey()));
  expect(queries).toEqual([expect.stringContaining('from api_key where public_id = $1 and key_hash = $2')]);
  expect(await queriesOf(keyCredential(unknown))).toEqual(queries);
});

/** The last use in the key's record. */
async function lastUse({ accountId }: SomeKey) {
  const [apiKey] = (await identity.apiKeys.listApiKeys({ accountId })).apiKeys;
  const seconds = apiKey?.lastUsedAt?.seconds;
  return { at: seconds === undefined ? undefined : new Date(Number(seconds) * 1_000), ip: apiKey?.lastUsedIp };
}

test('further uses from one address are recorded once a minute', async () => {
  const key = await createSomeKey(identity);
  await use(key.plaintextKey, '192.0.2.1');
  const first = await lastUse(key);
  identity.clock.advance(MINUTE_MS - 1);
  await use(key.plaintextKey, '192.0.2.1');
  expect(await lastUse(key)).toEqual(first);
  identity.clock.advance(1);
  await use(key.plaintextKey, '192.0.2.1');
  expect(await lastUse(key)).toEqual({ at: identity.clock.now(), ip: '192.0.2.1' });
});

test.each(['', 'unknown', '192.0.2.256', '192.0.2.1, 192.0.2.2', '::1\0', '\ud800', 'x'.repeat(10_000)])(
  'a text other than an address leaves the recorded one as it is (%#)',
  async (clientIp) => {
    const key = await createSomeKey(identity);
    await use(key.plaintextKey, '192.0.2.1');
    identity.clock.advance(MINUTE_MS);
    await use(key.plaintextKey, clientIp);
    expect(await lastUse(key)).toEqual({ at: identity.clock.now(), ip: '192.0.2.1' });
  },
);

test('a key is valid also when its use can’t be recorded', async () => {
  const key = await createSomeKey(identity);
  const used = await whileFailing(identity.db, { table: 'api_key' }, () => outcomeOf(use(key.plaintextKey, '192.0.2.1')));
  expect(used).toBe('done');
  expect((await lastUse(key)).at).toBeUndefined();
});
