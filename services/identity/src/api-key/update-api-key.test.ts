import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { UpdateApiKeyRequestSchema } from '@latchkey/proto/latchkey/identity/v1/api_key_pb';
import { createTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { testRedis } from '@latchkey/testkit/redis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { migrateIdentity, outcomeOf, refusalOf, startTestIdentity, type TestIdentity } from '../testing/identity.fixture.ts';
import { createSomeKey, keyCredential, type SomeKey, someAccountId } from '../testing/sample.fixture.ts';
import { MINUTE_MS } from '../testing/test-clock.ts';

let database: TestDatabase;
let identity: TestIdentity;

beforeAll(async () => {
  database = await createTestDatabase({ schema: 'identity', migrate: migrateIdentity });
  identity = await startTestIdentity({ databaseUrl: database.url, redisUrl: (await testRedis()).url });
});
afterAll(async () => {
  await identity.stop();
  await database.drop();
});

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
  const renamed = (await update(key, { name: ' \u202eRe\u200bnamed\0 ' })).apiKey;
  expect(renamed).toEqual({ ...before, name: 'Renamed', updatedAt });
  const narrowed = (await update(key, { scopes: { scopes: ['files:read'] } })).apiKey;
  expect(narrowed).toEqual({ ...renamed, scopes: ['files:read'] });
  const moved = (await update(key, { applicationIds: { applicationIds: [key.third] } })).apiKey;
  expect(moved).toEqual({ ...narrowed, applicationIds: [key.third] });
  const expiring = (await update(key, { expiry: expiry(MINUTE_MS) })).apiKey;
  expect(expiring).toEqual({ ...moved, expiresAt: expiry(MINUTE_MS).value });
  expect((await update(key, { expiry: NEVER })).apiKey).toEqual(moved);
  expect((await identity.apiKeys.listApiKeys({ accountId: key.accountId })).apiKeys).toEqual([moved]);
});

test('an update of nothing changes nothing', async () => {
  const key = await createSomeKey(identity);
  identity.clock.advance(MINUTE_MS);
  for (const change of [{}, { expiry: { case: 'neverExpires' as const, value: false } }]) {
    expect((await update(key, change)).apiKey).toEqual(key.apiKey);
  }
});

test('opening a key to all applications empties its list, and a list closes it again', async () => {
  const key = await createRestrictedKey();
  const opened = (await update(key, { allApplications: true })).apiKey;
  expect(opened).toMatchObject({ allApplications: true, applicationIds: [] });
  const list = { applicationIds: key.applicationIds };
  const closed = (await update(key, { allApplications: false, applicationIds: list })).apiKey;
  expect(closed).toMatchObject({ allApplications: false, applicationIds: key.applicationIds });
});

test.each([
  ['a name of 2 characters', { name: 'ab' }],
  ['no scope', { scopes: { scopes: [] } }],
  ['a scope twice', { scopes: { scopes: ['files:read', 'files:read'] } }],
  ['an expiry in the past', { expiry: { case: 'expiresAt' as const, value: { seconds: 0n } } }],
  ['applications together with all of them', { allApplications: true, applicationIds: { applicationIds: ['x'] } }],
  ['an empty list for a restricted key', { allApplications: false, applicationIds: { applicationIds: [] } }],
])('an update to %s is refused as malformed', async (_what, change) => {
  const refusal = await refusalOf(update(await createSomeKey(identity), change as Change));
  expect(refusal).toMatchObject({ reason: 'api_key_settings_invalid', kind: 'malformed', code: 'VALIDATION_ERROR' });
});

test('an update that contradicts only what is stored is refused as a conflict', async () => {
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

test('a restricted key whose applications are all gone keeps its other settings changeable', async () => {
  const key = await createRestrictedKey();
  await identity.db.query(`update api_key set application_ids = '{}' where id = $1`, [key.apiKey.id]);
  expect(await outcomeOf(update(key, { name: 'Still here' }))).toBe('done');
  expect(await outcomeOf(update(key, { allApplications: false }))).toBe('api_key_conflict');
});

test('an update to applications that are not the account’s is refused', async () => {
  const key = await createRestrictedKey();
  const [others = ''] = identity.apps.createApplications(await someAccountId(identity), 1);
  for (const id of [others, 'not-a-uuid']) {
    const change = { applicationIds: { applicationIds: [key.third, id] } };
    expect(await outcomeOf(update(key, change))).toBe('application_not_found');
  }
});

test('an expired key works again once its expiry is moved', async () => {
  const key = await createSomeKey(identity, { expiresAt: expiry(MINUTE_MS).value });
  const use = () => outcomeOf(identity.authentication.authenticate({ credential: keyCredential(key.plaintextKey) }));
  identity.clock.advance(MINUTE_MS);
  expect(await use()).toBe('api_key_expired');
  await update(key, { expiry: expiry(MINUTE_MS) });
  expect(await use()).toBe('done');
});
