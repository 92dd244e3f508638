import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { createTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { testRedis } from '@latchkey/testkit/redis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { migrateIdentity, refusalOf, startTestIdentity, type TestIdentity } from '../testing/identity.fixture.ts';
import { createSomeKey, type SomeKey, someAccountId } from '../testing/sample.fixture.ts';
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

const refOf = ({ accountId, apiKey }: SomeKey) => ({ accountId, apiKeyId: apiKey.id });

test('a key of another account is neither changed nor revoked, with the answer for one that never was', async () => {
  const key = await createSomeKey(identity);
  const strangerId = await someAccountId(identity);
  const refusals = [];
  for (const [accountId, apiKeyId] of [
    [strangerId, crypto.randomUUID()],
    [strangerId, key.apiKey.id],
    [strangerId, 'not-a-uuid'],
    ['not-a-uuid', key.apiKey.id],
    [key.accountId, '\0'],
  ]) {
    const ref = { accountId, apiKeyId } as { accountId: string; apiKeyId: string };
    const change = { ...ref, name: 'Stolen', allApplications: false, applicationIds: { applicationIds: ['not-a-uuid'] } };
    refusals.push(await refusalOf(identity.apiKeys.updateApiKey(change)), await refusalOf(identity.apiKeys.revokeApiKey(ref)));
  }
  expect(refusals[0]).toMatchObject({ reason: 'api_key_not_found', kind: 'not_found', code: 'not_found' });
  for (const refusal of refusals) expect(refusal).toEqual(refusals[0]);
  expect((await identity.apiKeys.listApiKeys({ accountId: key.accountId })).apiKeys).toEqual([key.apiKey]);
});

test('revoking a key twice keeps the first time', async () => {
  const key = await createSomeKey(identity);
  const ref = refOf(key);
  const { apiKey } = await identity.apiKeys.revokeApiKey(ref);
  expect(apiKey?.revokedAt).toEqual(timestampFromDate(identity.clock.now()));
  identity.clock.advance(MINUTE_MS);
  expect((await identity.apiKeys.revokeApiKey(ref)).apiKey).toEqual(apiKey);
});

test('a revoked key can’t be changed', async () => {
  const key = await createSomeKey(identity);
  await identity.apiKeys.revokeApiKey(refOf(key));
  const refusal = await refusalOf(identity.apiKeys.updateApiKey({ ...refOf(key), name: 'Risen' }));
  expect(refusal).toMatchObject({ reason: 'revoked_api_key_unchangeable', kind: 'invalid', code: 'bad_request' });
});
