import { createTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { migrateIdentity, outcomeOf, startTestIdentity, type TestIdentity } from '../testing/identity.fixture.ts';
import { createSomeKey, keyCredential, type SomeKey } from '../testing/sample.fixture.ts';
import { MINUTE_MS, SECOND_MS } from '../testing/test-clock.ts';
import { waitersForLocks } from '../testing/waiters.ts';

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

const use = ({ plaintextKey }: SomeKey, clientIp: string) =>
  identity.authentication.authenticate({ credential: keyCredential(plaintextKey), clientIp });

/** What the key's owner is told of its last use. */
async function lastUse({ accountId }: SomeKey) {
  const [apiKey] = (await identity.apiKeys.listApiKeys({ accountId })).apiKeys;
  const seconds = apiKey?.lastUsedAt?.seconds;
  return { at: seconds === undefined ? undefined : new Date(Number(seconds) * 1_000), ip: apiKey?.lastUsedIp };
}

test('the first use of a key is recorded at once', async () => {
  const key = await createSomeKey(identity);
  expect(await lastUse(key)).toEqual({ at: undefined, ip: undefined });
  await use(key, '192.0.2.1');
  expect(await lastUse(key)).toEqual({ at: identity.clock.now(), ip: '192.0.2.1' });
});

test('further uses from one address are recorded once a minute', async () => {
  const key = await createSomeKey(identity);
  await use(key, '192.0.2.1');
  const first = await lastUse(key);
  identity.clock.advance(MINUTE_MS - 1);
  await use(key, '192.0.2.1');
  expect(await lastUse(key)).toEqual(first);
  identity.clock.advance(1);
  await use(key, '192.0.2.1');
  expect(await lastUse(key)).toEqual({ at: identity.clock.now(), ip: '192.0.2.1' });
});

test('a use from another address is recorded at once', async () => {
  const key = await createSomeKey(identity);
  await use(key, '192.0.2.1');
  await use(key, '2001:db8::1');
  expect((await lastUse(key)).ip).toBe('2001:db8::1');
});

test('a use is no change by the owner’s hand', async () => {
  const key = await createSomeKey(identity);
  identity.clock.advance(MINUTE_MS);
  await use(key, '192.0.2.1');
  const [apiKey] = (await identity.apiKeys.listApiKeys({ accountId: key.accountId })).apiKeys;
  expect(apiKey?.updatedAt).toEqual(key.apiKey.updatedAt);
});

test.each(['', 'unknown', '192.0.2.256', '192.0.2.1, 192.0.2.2', '::1\0', '\ud800', 'x'.repeat(10_000)])(
  'what is no address leaves the recorded one as it is (%#)',
  async (clientIp) => {
    const key = await createSomeKey(identity);
    await use(key, '192.0.2.1');
    identity.clock.advance(MINUTE_MS);
    await use(key, clientIp);
    expect(await lastUse(key)).toEqual({ at: identity.clock.now(), ip: '192.0.2.1' });
  },
);

test('the zone of an address is left out', async () => {
  const key = await createSomeKey(identity);
  await use(key, `fe80::1%${'z'.repeat(1_000)}`);
  expect((await lastUse(key)).ip).toBe('fe80::1');
});

test('a key is valid also when its use can’t be recorded', async () => {
  const key = await createSomeKey(identity);
  await identity.db.query('alter table api_key add constraint refuse_use check (last_used_at is null) not valid');
  expect(await outcomeOf(use(key, '192.0.2.1'))).toBe('done');
  await identity.db.query('alter table api_key drop constraint refuse_use');
  expect((await lastUse(key)).at).toBeUndefined();
});

test('of uses at once the first one is written, and the others find it written', async () => {
  const key = await createSomeKey(identity);
  const first = identity.clock.now();
  const client = await identity.db.connect();
  await client.query('begin');
  await client.query('select 1 from api_key where id = $1 for update', [key.apiKey.id]);
  const uses: Array<Promise<unknown>> = [];
  while (uses.length < 3) {
    uses.push(use(key, '192.0.2.1'));
    await eventually(() => waitersForLocks(identity.db, uses.length));
    identity.clock.advance(SECOND_MS);
  }
  await client.query('commit');
  client.release();
  await Promise.all(uses);
  expect((await lastUse(key)).at).toEqual(first);
});
