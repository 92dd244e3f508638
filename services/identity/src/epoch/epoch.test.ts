import { createTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { migrateIdentity, outcomeOf, startTestIdentity, type TestIdentity } from '../testing/identity.fixture.ts';
import { createSomeKey, keyCredential, type SomeKey, sessionCredential, signUpSomeone } from '../testing/sample.fixture.ts';
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

const use = ({ plaintextKey }: SomeKey) => identity.authentication.authenticate({ credential: keyCredential(plaintextKey) });
const refOf = ({ accountId, apiKey }: SomeKey) => ({ accountId, apiKeyId: apiKey.id });

test('an answer names the epoch that Redis holds, for a minute at most', async () => {
  const { epochKey, epoch } = await use(await createSomeKey(identity));
  expect(await identity.redis.get(epochKey)).toBe(epoch);
  expect(epoch).toMatch(/^[\w-]{16}$/);
  const lifetimeMs = await identity.redis.pttl(epochKey);
  expect(lifetimeMs).toBeGreaterThan(50_000);
  expect(lifetimeMs).toBeLessThanOrEqual(60_000);
});

test('every instance answers the same epoch as long as nothing changed', async () => {
  const key = await createSomeKey(identity);
  const other = await identity.connect();
  const [first, second] = [await use(key), await use(key)];
  const third = await other.authentication.authenticate({ credential: keyCredential(key.plaintextKey) });
  expect(second).toMatchObject({ epochKey: first.epochKey, epoch: first.epoch });
  expect(third).toMatchObject({ epochKey: first.epochKey, epoch: first.epoch });
});

test('an epoch that is gone is made again and never the same', async () => {
  const key = await createSomeKey(identity);
  const { epochKey, epoch } = await use(key);
  await identity.redis.del(epochKey);
  expect((await use(key)).epoch).not.toBe(epoch);
});

test.each([
  ['revoked', (key: SomeKey) => identity.apiKeys.revokeApiKey(refOf(key))],
  ['narrowed', (key: SomeKey) => identity.apiKeys.updateApiKey({ ...refOf(key), scopes: { scopes: ['files:read'] } })],
  [
    'revoked again',
    async (key: SomeKey) => {
      await identity.db.query('update api_key set revoked_at = now() where id = $1', [key.apiKey.id]);
      await identity.apiKeys.revokeApiKey(refOf(key));
    },
  ],
])('the epoch of a key is gone once it is answered that the key was %s', async (_what, change) => {
  const key = await createSomeKey(identity);
  const { epochKey } = await use(key);
  await change(key);
  expect(await identity.redis.get(epochKey)).toBeNull();
});

test('the epoch is read before the credential is looked up', async () => {
  const key = await createSomeKey(identity);
  const { epochKey } = await use(key);
  await identity.redis.del(epochKey);
  const client = await identity.db.connect();
  await client.query('begin');
  await client.query('lock table api_key in access exclusive mode');
  const authenticated = use(key);
  await eventually(() => waitersForLocks(identity.db, 1));
  // As a revocation does that ends before the look-up is answered.
  const ended = await identity.redis.getdel(epochKey);
  await client.query('commit');
  client.release();
  expect((await authenticated).epoch).toBe(ended);
  expect(ended).not.toBeNull();
});

test('a principal that was looked up before a revocation carries no epoch that stands after it', async () => {
  const key = await createSomeKey(identity);
  const client = await identity.db.connect();
  // The look-up finds the key valid; then the record of its use waits for the row, and so does the revocation.
  await client.query('begin');
  await client.query('select 1 from api_key where id = $1 for update', [key.apiKey.id]);
  const authenticated = use(key);
  await eventually(() => waitersForLocks(identity.db, 1));
  const revoked = identity.apiKeys.revokeApiKey(refOf(key));
  await eventually(() => waitersForLocks(identity.db, 2));
  await client.query('commit');
  client.release();
  const [{ principal, epochKey, epoch }] = await Promise.all([authenticated, revoked]);
  expect(principal?.credentialId).toBe(key.apiKey.id);
  expect(await outcomeOf(use(key))).toBe('api_key_revoked');
  expect(epoch).not.toBe('');
  expect(await identity.redis.get(epochKey)).not.toBe(epoch);
});

test('a key is refused from the moment its revocation is answered, however much it is used meanwhile', async () => {
  const key = await createSomeKey(identity);
  const other = await identity.connect();
  let revoked = false;
  const outcomes: Array<{ begunAfter: boolean; outcome: string }> = [];
  const keepUsing = async ({ authentication }: Pick<TestIdentity, 'authentication'>) => {
    for (let left = 5; left > 0; left -= revoked ? 1 : 0) {
      const begunAfter = revoked;
      const outcome = await outcomeOf(authentication.authenticate({ credential: keyCredential(key.plaintextKey) }));
      outcomes.push({ begunAfter, outcome });
    }
  };
  const users = [identity, other, identity, other].map(keepUsing);
  await eventually(() => outcomes.length >= 20);
  await identity.apiKeys.revokeApiKey(refOf(key));
  revoked = true;
  await Promise.all(users);
  expect(outcomes[0]?.outcome).toBe('done');
  const after = outcomes.filter(({ begunAfter }) => begunAfter).map(({ outcome }) => outcome);
  expect(new Set(after)).toEqual(new Set(['api_key_revoked']));
});

test('Redis holds nothing that a credential could be made or found from', async () => {
  const key = await createSomeKey(identity);
  const { session } = await signUpSomeone(identity);
  await use(key);
  await identity.authentication.authenticate({ credential: sessionCredential(session.token) });
  const { rows } = await identity.db.query(`
    select encode(key_hash, 'hex') as hash from api_key union all select encode(token_hash, 'hex') from session`);
  const forms = rows.flatMap(({ hash }) => {
    const bytes = Buffer.from(hash, 'hex');
    return [hash, bytes.toString('base64'), bytes.toString('base64url')];
  });
  const names = await identity.redis.keys('*');
  expect(names.length).toBeGreaterThanOrEqual(2);
  const held = [...names, ...(await identity.redis.mget(names))].join('\n');
  for (const secret of [key.plaintextKey.slice(25), session.token, ...forms]) expect(held).not.toContain(secret);
});
