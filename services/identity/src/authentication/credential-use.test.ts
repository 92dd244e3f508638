import { createTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { testRedis } from '@latchkey/testkit/redis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { migrateIdentity, outcomeOf, startTestIdentity, type TestIdentity } from '../testing/identity.fixture.ts';
import { createSomeKey, keyCredential, type SomeKey } from '../testing/sample.fixture.ts';
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

test('uses at once are recorded by one write', async () => {
  const key = await createSomeKey(identity);
  const version = async () => (await identity.db.query('select xmin from api_key where id = $1', [key.apiKey.id])).rows[0].xmin;
  const created = await version();
  await Promise.all(Array.from({ length: 20 }, () => use(key, '192.0.2.1')));
  const recorded = await version();
  expect(recorded).not.toBe(created);
  await Promise.all(Array.from({ length: 20 }, () => use(key, '192.0.2.1')));
  expect(await version()).toBe(recorded);
});
