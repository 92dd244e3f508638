import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { eventually } from '@latchkey/testkit/eventually';
import { expect, test } from 'vitest';
import { openTestIdentity, outcomeOf, waitersForLocks } from '../testing/identity.ts';
import { createSomeKey, type SomeKey, someAccountId } from '../testing/sample.ts';

const identity = await openTestIdentity();

const refOf = ({ accountId, apiKey }: SomeKey) => ({ accountId, apiKeyId: apiKey.id });
const update = (key: SomeKey, change: object) => identity.apiKeys.updateApiKey({ ...refOf(key), ...change });
const stored = async ({ accountId }: SomeKey) => (await identity.apiKeys.listApiKeys({ accountId })).apiKeys[0];

/** A key that is restricted to one application of its account, and another application. */
async function createRestrictedKey() {
  const accountId = await someAccountId(identity);
  const [first = '', second = ''] = identity.apps.createApplications(accountId, 2);
  return { ...(await createSomeKey(identity, { accountId, allApplications: false, applicationIds: [first] })), second };
}

/** Starts changes one after the other while the key is locked. */
async function atOnce(key: SomeKey, ...changes: Array<() => Promise<unknown>>): Promise<string[]> {
  const client = await identity.db.connect();
  await client.query('begin');
  await client.query('select 1 from api_key where id = $1 for update', [key.apiKey.id]);
  const outcomes: Array<Promise<string>> = [];
  for (const change of changes) {
    outcomes.push(outcomeOf(change()));
    await eventually(() => waitersForLocks(identity, outcomes.length));
  }
  await client.query('commit');
  client.release();
  return Promise.all(outcomes);
}

test('concurrent updates of different settings are all kept', async () => {
  const key = await createRestrictedKey();
  const expiresAt = timestampFromDate(new Date(identity.clock.now().getTime() + 60_000));
  const outcomes = await atOnce(
    key,
    () => update(key, { name: 'Together' }),
    () => update(key, { scopes: { scopes: ['account:read'] } }),
    () => update(key, { allApplications: true }),
    () => update(key, { expiry: { case: 'expiresAt', value: expiresAt } }),
  );
  expect(new Set(outcomes)).toEqual(new Set(['done']));
  expect(await stored(key)).toMatchObject({ name: 'Together', scopes: ['account:read'], allApplications: true, expiresAt });
});

test('an update that waited for a revocation is rejected', async () => {
  const key = await createRestrictedKey();
  const outcomes = await atOnce(
    key,
    () => identity.apiKeys.revokeApiKey(refOf(key)),
    () => update(key, { name: 'Too late' }),
  );
  expect(outcomes).toEqual(['done', 'revoked_api_key_unchangeable']);
  expect(await stored(key)).toMatchObject({ name: key.apiKey.name, revokedAt: expect.anything() });
});
