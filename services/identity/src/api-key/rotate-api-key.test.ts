import { timestampDate } from '@bufbuild/protobuf/wkt';
import { holdLocks, waitersForLocks } from '@latchkey/testkit/postgres/lock-waits';
import { refusalOf } from '@latchkey/testkit/refusal';
import { expect, test } from 'vitest';
import { openTestIdentity, outcomeOf } from '../testing/identity.ts';
import { createSomeKey, keyCredential, present, type SomeKey, someAccountId } from '../testing/sample.ts';

const identity = await openTestIdentity();

const rotate = ({ apiKey, accountId }: SomeKey, overlapSeconds = 0) =>
  identity.apiKeys.rotateApiKey({ accountId, apiKeyId: apiKey.id, overlapSeconds });
const use = (text: string) => outcomeOf(identity.authentication.authenticate({ credential: keyCredential(text) }));

test('both keys are valid during the overlap, and only the new one after it', async () => {
  const old = await createSomeKey(identity);
  const { apiKey, plaintextKey } = await rotate(old, 60);
  const { name, scopes, allApplications } = old.apiKey;
  expect(apiKey).toMatchObject({ name, scopes, allApplications });
  expect(present(apiKey).id).not.toBe(old.apiKey.id);
  identity.clock.advance(59_000);
  expect([await use(old.plaintextKey), await use(plaintextKey)]).toEqual(['done', 'done']);
  identity.clock.advance(1_000);
  expect([await use(old.plaintextKey), await use(plaintextKey)]).toEqual(['api_key_expired', 'done']);
});

test('without an overlap the old key is rejected on the next request', async () => {
  const old = await createSomeKey(identity);
  expect(await use(old.plaintextKey)).toBe('done');
  const { plaintextKey } = await rotate(old);
  expect([await use(old.plaintextKey), await use(plaintextKey)]).toEqual(['api_key_expired', 'done']);
  expect(await refusalOf(rotate(old))).toMatchObject({ reason: 'api_key_not_active' });
});

test('an overlap never extends the old key', async () => {
  const seconds = BigInt(Math.floor(identity.clock.now().getTime() / 1_000) + 30);
  const old = await createSomeKey(identity, { expiresAt: { seconds } });
  await rotate(old, 60);
  const { apiKeys } = await identity.apiKeys.listApiKeys({ accountId: old.accountId });
  const expiries = apiKeys.map(({ expiresAt }) => timestampDate(present(expiresAt)).getTime() / 1_000);
  expect(expiries).toEqual([Number(seconds), Number(seconds)]);
});

test('old keys in their overlap at most double the active keys', async () => {
  const old = await createSomeKey(identity);
  const { activeCountMax } = await identity.apiKeys.getApiKeyUsage(old);
  const activeMax = 2 * Number(activeCountMax);
  for (let active = 1; active < activeMax; active += 1) await rotate(old, 60);
  expect(await refusalOf(rotate(old, 60))).toMatchObject({ reason: 'active_api_keys_limit_exceeded' });
});

test('a rotation and the deletion of its account do not deadlock', async () => {
  const old = await createSomeKey(identity);
  const release = await holdLocks(identity.db, 'select from account where id = $1 for update', [old.accountId]);
  const rotated = outcomeOf(rotate(old));
  await waitersForLocks(identity.db, 1);
  await release(`delete from account where id = '${old.accountId}'`);
  expect(await rotated).toBe('api_key_not_found');
});

test('rejects unknown, foreign and revoked keys, and overlaps out of bounds', async () => {
  const old = await createSomeKey(identity);
  for (const other of [
    { ...old, accountId: await someAccountId(identity) },
    { ...old, apiKey: { ...old.apiKey, id: 'x' } },
  ])
    expect(await refusalOf(rotate(other))).toMatchObject({ reason: 'api_key_not_found' });
  for (const seconds of [-1, 604_801])
    expect(await refusalOf(rotate(old, seconds))).toMatchObject({ reason: 'api_key_settings_invalid' });
  await identity.apiKeys.revokeApiKey({ accountId: old.accountId, apiKeyId: old.apiKey.id });
  expect(await refusalOf(rotate(old))).toMatchObject({ reason: 'api_key_not_active' });
});
