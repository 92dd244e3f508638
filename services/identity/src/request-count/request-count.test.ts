import { refusalOf } from '@latchkey/testkit/refusal';
import { expect, test } from 'vitest';
import { openTestIdentity } from '../testing/identity.ts';
import { createSomeKey, type SomeKey, someAccountId } from '../testing/sample.ts';

const DAY_MS = 24 * 3_600_000;
const identity = await openTestIdentity();

const record = (...counts: Array<{ apiKeyId: string; requests: number }>) => identity.apiKeys.recordApiKeyRequests({ counts });

async function requestsOf({ accountId, apiKey }: SomeKey, days = 90) {
  const { days: rows } = await identity.apiKeys.listApiKeyRequests({ accountId, apiKeyId: apiKey.id, days });
  return rows.map(({ date, requests }) => [date, requests]);
}

test('requests of a key add up in a row a day, and days without any are zeros', async () => {
  const key = await createSomeKey(identity);
  const apiKeyId = key.apiKey.id;
  await record({ apiKeyId, requests: 2 }, { apiKeyId, requests: 1 }, { apiKeyId: 'x', requests: 1 });
  await record({ apiKeyId, requests: 4 });
  identity.clock.advance(2 * DAY_MS);
  await record({ apiKeyId, requests: 1 }, { apiKeyId: key.accountId, requests: 1 });
  const dateOf = (daysAgo: number) => new Date(identity.clock.now().getTime() - daysAgo * DAY_MS).toISOString().slice(0, 10);
  expect(await requestsOf(key, 3)).toEqual([
    [dateOf(2), 7n],
    [dateOf(1), 0n],
    [dateOf(0), 1n],
  ]);
  expect(await requestsOf(key, -1)).toHaveLength(1);
  expect(await requestsOf(key, 91)).toHaveLength(90);
});

test('requests are shown to the account of the key', async () => {
  const key = await createSomeKey(identity);
  await record({ apiKeyId: key.apiKey.id, requests: 1 });
  for (const other of [
    { ...key, accountId: await someAccountId(identity) },
    { ...key, apiKey: { ...key.apiKey, id: 'x' } },
  ])
    expect(await refusalOf(requestsOf(other))).toMatchObject({ reason: 'api_key_not_found' });
});
