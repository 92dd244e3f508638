import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { refusalOf } from '@latchkey/testkit/refusal';
import { expect, test } from 'vitest';
import { MINUTE_MS, openTestIdentity, outcomeOf } from '../testing/identity.ts';
import { createSomeKey, OPEN_KEY, type SomeKey, someAccountId } from '../testing/sample.ts';

const identity = await openTestIdentity();

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

test('concurrent creations stop at the limit of active keys', async () => {
  const accountId = await someAccountId(identity);
  const outcomes = await createMany(accountId, LIMIT + 10);
  expect(outcomes.filter((outcome) => outcome === 'done')).toHaveLength(LIMIT);
  expect(outcomes.filter((outcome) => outcome === 'active_api_keys_limit_exceeded')).toHaveLength(10);
  const refusal = await refusalOf(create(accountId));
  expect(refusal).toMatchObject({ reason: 'active_api_keys_limit_exceeded', kind: 'forbidden', code: 'limit_exceeded' });
  expect((await identity.apiKeys.listApiKeys({ accountId })).apiKeys).toHaveLength(LIMIT);
});

test('at the limit an expired key can be changed but not become active', async () => {
  const { accountId, keys } = await createExpiredKeys(1);
  await createMany(accountId, LIMIT);
  const [key] = keys as [SomeKey];
  expect(await outcomeOf(revive(key))).toBe('active_api_keys_limit_exceeded');
  const rename = { accountId, apiKeyId: key.apiKey.id, name: 'Renamed' };
  expect(await outcomeOf(identity.apiKeys.updateApiKey(rename))).toBe('done');
});
