import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { createTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { testRedis } from '@latchkey/testkit/redis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { migrateIdentity, outcomeOf, refusalOf, startTestIdentity, type TestIdentity } from '../testing/identity.fixture.ts';
import { createSomeKey, OPEN_KEY, type SomeKey, someAccountId } from '../testing/sample.fixture.ts';
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

const LIMIT = 20;

const inAMinute = () => timestampFromDate(new Date(identity.clock.now().getTime() + MINUTE_MS));
const create = (accountId: string) => identity.apiKeys.createApiKey({ ...OPEN_KEY, accountId });
const createMany = (accountId: string, count: number) =>
  Promise.all(Array.from({ length: count }, () => outcomeOf(create(accountId))));
const revive = ({ apiKey, accountId }: SomeKey) =>
  identity.apiKeys.updateApiKey({ accountId, apiKeyId: apiKey.id, expiry: { case: 'neverExpires', value: true } });

/** An account with so many expired keys. */
async function createExpiredKeys(count: number): Promise<{ accountId: string; keys: SomeKey[] }> {
  const accountId = await someAccountId(identity);
  const create = () => createSomeKey(identity, { accountId, expiresAt: inAMinute() });
  const keys = await Promise.all(Array.from({ length: count }, create));
  identity.clock.advance(MINUTE_MS);
  return { accountId, keys };
}

test('keys made at once are exactly as many as may be active', async () => {
  const accountId = await someAccountId(identity);
  const outcomes = await createMany(accountId, LIMIT + 10);
  expect(outcomes.filter((outcome) => outcome === 'done')).toHaveLength(LIMIT);
  expect(outcomes.filter((outcome) => outcome === 'active_api_keys_limit_exceeded')).toHaveLength(10);
  const refusal = await refusalOf(create(accountId));
  expect(refusal).toMatchObject({ reason: 'active_api_keys_limit_exceeded', kind: 'forbidden', code: 'limit_exceeded' });
  expect((await identity.apiKeys.listApiKeys({ accountId })).apiKeys).toHaveLength(LIMIT);
});

test('two instances that make keys at once keep to one limit', async () => {
  const other = await identity.connect();
  const accountId = await someAccountId(identity);
  const elsewhere = Array.from({ length: LIMIT }, () => outcomeOf(other.apiKeys.createApiKey({ ...OPEN_KEY, accountId })));
  const outcomes = [...(await createMany(accountId, LIMIT)), ...(await Promise.all(elsewhere))];
  expect(outcomes.filter((outcome) => outcome === 'done')).toHaveLength(LIMIT);
});

test('revoked and expired keys leave room', async () => {
  const { accountId, keys } = await createExpiredKeys(2);
  await createMany(accountId, LIMIT);
  expect(await outcomeOf(create(accountId))).toBe('active_api_keys_limit_exceeded');
  const { apiKeys } = await identity.apiKeys.listApiKeys({ accountId });
  await identity.apiKeys.revokeApiKey({ accountId, apiKeyId: apiKeys.at(-1)?.id ?? '' });
  const { rowCount } = await identity.db.query('select 1 from api_key where account_id = $1', [accountId]);
  expect(rowCount).toBe(LIMIT + keys.length);
  expect(await outcomeOf(create(accountId))).toBe('done');
});

test('an expired key can’t become active again where there is no room, whatever else it may be changed to', async () => {
  const { accountId, keys } = await createExpiredKeys(1);
  await createMany(accountId, LIMIT);
  const [key] = keys as [SomeKey];
  expect(await outcomeOf(revive(key))).toBe('active_api_keys_limit_exceeded');
  const rename = { accountId, apiKeyId: key.apiKey.id, name: 'Renamed' };
  expect(await outcomeOf(identity.apiKeys.updateApiKey(rename))).toBe('done');
});

test('an active key can be changed where there is no room', async () => {
  const accountId = await someAccountId(identity);
  await createMany(accountId, LIMIT);
  const [apiKey] = (await identity.apiKeys.listApiKeys({ accountId })).apiKeys;
  const change = { accountId, apiKeyId: apiKey?.id ?? '', expiry: { case: 'expiresAt' as const, value: inAMinute() } };
  expect(await outcomeOf(identity.apiKeys.updateApiKey(change))).toBe('done');
});

test('keys made and made active again at once are exactly as many as may be active', async () => {
  const { accountId, keys } = await createExpiredKeys(15);
  const attempts = [...keys.map((key) => outcomeOf(revive(key))), createMany(accountId, 15)];
  const outcomes = (await Promise.all(attempts)).flat();
  expect(outcomes.filter((outcome) => outcome === 'done')).toHaveLength(LIMIT);
  expect(outcomes.filter((outcome) => outcome === 'active_api_keys_limit_exceeded')).toHaveLength(10);
});

test('the limit is a setting, and each account’s own', async () => {
  const { apiKeys } = await identity.connect({ env: { ACTIVE_API_KEYS_LIMIT: '1' } });
  for (const accountId of [await someAccountId(identity), await someAccountId(identity)]) {
    expect(await outcomeOf(apiKeys.createApiKey({ ...OPEN_KEY, accountId }))).toBe('done');
    expect(await outcomeOf(apiKeys.createApiKey({ ...OPEN_KEY, accountId }))).toBe('active_api_keys_limit_exceeded');
  }
});
