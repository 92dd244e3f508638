import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { refusalOf } from '@latchkey/testkit/refusal';
import { expect, test } from 'vitest';
import { MINUTE_MS, openTestIdentity } from '../testing/identity.ts';
import { createSomeKey, type SomeKey, someAccountId } from '../testing/sample.ts';

const identity = await openTestIdentity();

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
