import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { UpdateApiKeyRequestSchema } from '@latchkey/proto/latchkey/identity/v1/api_key_pb';
import { holdLocks, waitersForLocks } from '@latchkey/testkit/postgres/lock-waits';
import { refusalOf } from '@latchkey/testkit/refusal';
import { expect, test } from 'vitest';
import { MINUTE_MS, openTestIdentity, outcomeOf } from '../testing/identity.ts';
import { createSomeKey, type SomeKey, someAccountId } from '../testing/sample.ts';

const identity = await openTestIdentity();

type Change = MessageInitShape<typeof UpdateApiKeyRequestSchema>;

const update = ({ apiKey, accountId }: Pick<SomeKey, 'apiKey' | 'accountId'>, change: Change) =>
  identity.apiKeys.updateApiKey({ ...change, accountId, apiKeyId: apiKey.id });
const expiry = (ms: number) => ({
  case: 'expiresAt' as const,
  value: timestampFromDate(new Date(identity.clock.now().getTime() + ms)),
});
const NEVER = { case: 'neverExpires' as const, value: true };

/** A key that is restricted to two applications of its account, and a third application. */
async function createRestrictedKey() {
  const accountId = await someAccountId(identity);
  const applicationIds = identity.apps.createApplications(accountId, 2);
  const [third = ''] = identity.apps.createApplications(accountId, 1);
  const key = await createSomeKey(identity, { accountId, allApplications: false, applicationIds });
  return { ...key, applicationIds, third };
}

test('an update changes what is given and leaves the rest', async () => {
  const key = await createRestrictedKey();
  const before = key.apiKey;
  identity.clock.advance(MINUTE_MS);
  const updatedAt = timestampFromDate(identity.clock.now());
  const etag = expect.any(String);
  const renamed = (await update(key, { name: ' \u202eRe\u200bnamed\0 ' })).apiKey;
  expect(renamed).toEqual({ ...before, name: 'Renamed', updatedAt, etag });
  const narrowed = (await update(key, { scopes: { scopes: ['files:read'] } })).apiKey;
  expect(narrowed).toEqual({ ...renamed, scopes: ['files:read'], etag });
  const moved = (await update(key, { applicationIds: { applicationIds: [key.third] } })).apiKey;
  expect(moved).toEqual({ ...narrowed, applicationIds: [key.third], etag });
  const expiring = (await update(key, { expiry: expiry(MINUTE_MS) })).apiKey;
  expect(expiring).toEqual({ ...moved, expiresAt: expiry(MINUTE_MS).value, etag });
  expect((await update(key, { expiry: NEVER })).apiKey).toEqual(moved);
  expect((await identity.apiKeys.listApiKeys({ accountId: key.accountId })).apiKeys).toEqual([moved]);
});

test('an update that contradicts only what is stored is rejected as a conflict', async () => {
  const restricted = await createRestrictedKey();
  const open = await createSomeKey(identity, { accountId: restricted.accountId });
  const applicationIds = { applicationIds: restricted.applicationIds };
  const conflict = { reason: 'api_key_conflict', kind: 'invalid', code: 'bad_request' };
  expect(await refusalOf(update(open, { applicationIds }))).toMatchObject(conflict);
  expect(await refusalOf(update(open, { allApplications: false }))).toMatchObject(conflict);
  expect(await refusalOf(update(restricted, { applicationIds: { applicationIds: [] } }))).toMatchObject(conflict);
  expect(await outcomeOf(update(open, { applicationIds: { applicationIds: [] } }))).toBe('done');
  expect(await outcomeOf(update(restricted, { allApplications: false }))).toBe('done');
});

test('the other settings of a restricted key whose applications are all gone can be changed', async () => {
  const key = await createRestrictedKey();
  await identity.db.query(`update api_key set application_ids = '{}' where id = $1`, [key.apiKey.id]);
  expect(await outcomeOf(update(key, { name: 'Still here' }))).toBe('done');
  expect(await outcomeOf(update(key, { allApplications: false }))).toBe('api_key_conflict');
});

const storedKey = async ({ accountId }: SomeKey) => (await identity.apiKeys.listApiKeys({ accountId })).apiKeys[0];

/** Starts changes one after the other while the key is locked. */
async function concurrently(key: SomeKey, ...changes: Array<() => Promise<unknown>>): Promise<string[]> {
  const release = await holdLocks(identity.db, 'select from api_key where id = $1 for update', [key.apiKey.id]);
  const outcomes: Array<Promise<string>> = [];
  for (const change of changes) {
    outcomes.push(outcomeOf(change()));
    await waitersForLocks(identity.db, outcomes.length);
  }
  await release();
  return Promise.all(outcomes);
}

test('concurrent updates of different settings are all kept', async () => {
  const key = await createRestrictedKey();
  const outcomes = await concurrently(
    key,
    () => update(key, { name: 'Together' }),
    () => update(key, { scopes: { scopes: ['account:read'] } }),
    () => update(key, { allApplications: true }),
    () => update(key, { expiry: expiry(MINUTE_MS) }),
  );
  expect(new Set(outcomes)).toEqual(new Set(['done']));
  expect(await storedKey(key)).toMatchObject({
    name: 'Together',
    scopes: ['account:read'],
    allApplications: true,
    expiresAt: expiry(MINUTE_MS).value,
  });
});

test('an update that waited for a revocation is rejected', async () => {
  const key = await createRestrictedKey();
  const outcomes = await concurrently(
    key,
    () => identity.apiKeys.revokeApiKey({ accountId: key.accountId, apiKeyId: key.apiKey.id }),
    () => update(key, { name: 'Too late' }),
  );
  expect(outcomes).toEqual(['done', 'revoked_api_key_unchangeable']);
  expect(await storedKey(key)).toMatchObject({ name: key.apiKey.name, revokedAt: expect.anything() });
});
