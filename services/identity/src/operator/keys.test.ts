import { createTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { testRedis } from '@latchkey/testkit/redis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { accountsCalls } from '../testing/accounts-call.ts';
import { migrateIdentity, outcomeOf, startTestIdentity, type TestIdentity } from '../testing/identity.fixture.ts';
import { createSomeKey, keyCredential, type SomeKey, signUpSomeone } from '../testing/sample.fixture.ts';

let database: TestDatabase;
let identity: TestIdentity;
let call: ReturnType<typeof accountsCalls>;

beforeAll(async () => {
  database = await createTestDatabase({ schema: 'identity', migrate: migrateIdentity });
  const servers = { databaseUrl: database.url, redisUrl: (await testRedis()).url };
  identity = await startTestIdentity(servers);
  call = accountsCalls(servers);
});
afterAll(async () => {
  await identity.stop();
  await database.drop();
});

const use = ({ plaintextKey }: SomeKey) => identity.authentication.authenticate({ credential: keyCredential(plaintextKey) });

describe('list-keys', () => {
  test('shows every key of the account, revoked ones too, and no secret', async () => {
    const many = await identity.connect({ env: { ACTIVE_API_KEYS_LIMIT: '100' } });
    const { account } = await signUpSomeone(identity);
    const keys: SomeKey[] = [];
    for (let i = 0; i < 41; i += 1) keys.push(await createSomeKey(many, { accountId: account.id, name: `Key ${i}` }));
    await createSomeKey(identity);
    const [first] = keys as [SomeKey];
    await use(first);
    await identity.apiKeys.revokeApiKey({ accountId: account.id, apiKeyId: first.apiKey.id });
    const { text, data } = await call(['list-keys', account.email]);
    expect(data.keys.map(({ publicId }: { publicId: string }) => publicId)).toEqual(keys.map(({ apiKey }) => apiKey.publicId));
    expect(data.keys[0]).toMatchObject({ name: 'Key 0', revokedAt: identity.clock.now().toISOString() });
    expect(text?.split('\n')[1]).toMatch(new RegExp(`^${first.apiKey.publicId} +revoked +all +.+Key 0$`));
    expect(text).toContain(`\n41 keys of ${account.username} (${account.email}).`);
    const all = text + JSON.stringify(data);
    for (const { plaintextKey } of keys) expect(all).not.toContain(plaintextKey.slice(-48));
    const { rows } = await identity.db.query(
      "select encode(key_hash, 'hex') as hash, encode(key_hash, 'base64') as text from api_key",
    );
    for (const { hash, text: base64 } of rows) for (const form of [hash, base64]) expect(all).not.toContain(form);
  });

  test('lets no name of a key hide or move what is shown', async () => {
    const key = await createSomeKey(identity);
    // Names that were stored before invisible characters were removed from them.
    await identity.db.query('update api_key set name = $1 where id = $2', ['A \u202Eyek\u2028', key.apiKey.id]);
    const { text } = await call(['list-keys', key.accountId]);
    expect(text).toContain('A ?yek');
    expect(text).not.toMatch(/[\u202E\u2028]/);
  });
});

describe('revoke-key', () => {
  test.each([
    ['public id', ({ apiKey }: SomeKey) => apiKey.publicId],
    ['id', ({ apiKey }: SomeKey) => apiKey.id.toUpperCase()],
  ])('revokes the key of that %s from the next request on, and once', async (_what, nameOf) => {
    const key = await createSomeKey(identity);
    const other = await createSomeKey(identity, { accountId: key.accountId });
    const { epochKey } = await use(key);
    const { text, data } = await call(['revoke-key', key.accountId, nameOf(key)]);
    expect(text).toMatch(new RegExp(`^Revoked the key ${key.apiKey.publicId} \\(A key\\) of `));
    expect(data).toMatchObject({ changed: true, key: { id: key.apiKey.id } });
    expect(await identity.redis.get(epochKey)).toBeNull();
    expect(await outcomeOf(use(key))).toBe('api_key_revoked');
    expect(await outcomeOf(use(other))).toBe('done');
    const again = await call(['revoke-key', key.accountId, nameOf(key)]);
    expect(again).toMatchObject({ data: { changed: false, key: { revokedAt: data.key.revokedAt } } });
    expect(again.text).toMatch(/^Nothing changed: the key .+ was revoked at /);
  });

  test("does not reach another account's key, nor one that there is not", async () => {
    const [mine, theirs] = [await createSomeKey(identity), await createSomeKey(identity)];
    for (const name of [theirs.apiKey.publicId, theirs.apiKey.id, '0'.repeat(16), '01900000-0000-7000-8000-00000000dead', '']) {
      expect(await call(['revoke-key', mine.accountId, name])).toMatchObject({
        refusal: 'api_key_not_found',
        message: expect.stringContaining(` has no key "${name}".`),
      });
    }
    expect(await outcomeOf(use(theirs))).toBe('done');
  });

  test('is told, where Redis does not answer, only when every gateway has forgotten the key', async () => {
    const key = await createSomeKey(identity);
    const startedAt = performance.now();
    const called = await call(['revoke-key', key.accountId, key.apiKey.id], { env: { REDIS_URL: 'redis://127.0.0.1:1' } });
    expect(called.hints).toBe('Redis does not answer: waiting 3 s, after which it holds everywhere.\n');
    expect(called.text).toMatch(/^Revoked /);
    // Timers may end a millisecond early.
    expect(performance.now() - startedAt).toBeGreaterThan(2_990);
    expect(await outcomeOf(use(key))).toBe('api_key_revoked');
  });

  test('tells nobody where nobody runs', async () => {
    const key = await createSomeKey(identity);
    const env = { REDIS_URL: 'redis://127.0.0.1:1' };
    const called = await call(['revoke-key', key.accountId, key.apiKey.id], { env, listeners: 'none' });
    expect(called).toMatchObject({ hints: '', data: { changed: true } });
  });
});
