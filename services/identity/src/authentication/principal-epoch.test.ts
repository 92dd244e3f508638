import { createLogger } from '@latchkey/kit/log/logger';
import type { Redis } from '@latchkey/kit/redis/redis';
import { eventually } from '@latchkey/testkit/eventually';
import { holdLocks, waitersForLocks } from '@latchkey/testkit/postgres/lock-waits';
import { expect, test } from 'vitest';
import { openTestIdentity, outcomeOf } from '../testing/identity.ts';
import { createSomeKey, keyCredential, present, type SomeKey, sessionCredential, signUpSomeone } from '../testing/sample.ts';
import { createEpochs } from './principal-epoch.ts';

const identity = await openTestIdentity();

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

test('the epoch is read before the credential', async () => {
  const key = await createSomeKey(identity);
  const { epochKey } = await use(key);
  await identity.redis.del(epochKey);
  const release = await holdLocks(identity.db, 'lock table api_key in access exclusive mode');
  const authenticated = use(key);
  await waitersForLocks(identity.db, 1);
  // As a revocation does that ends before the query.
  const ended = await identity.redis.getdel(epochKey);
  await release();
  expect((await authenticated).epoch).toBe(ended);
  expect(ended).not.toBeNull();
});

const NO_REDIS = { REDIS_URL: 'redis://localhost:1' };

test('without Redis, an answer has no epoch', async () => {
  const key = await createSomeKey(identity);
  const { session } = await signUpSomeone(identity);
  const { authentication } = identity.connect({ env: NO_REDIS });
  for (const credential of [keyCredential(key.plaintextKey), sessionCredential(session.token)]) {
    const answer = await authentication.authenticate({ credential });
    expect(answer).toMatchObject({ epochKey: '', epoch: '' });
    expect(answer.principal).toBeDefined();
  }
});

test('without Redis, a revocation is answered once every principal has grown too old', async () => {
  const waits: Array<{ ms: number; end: () => void }> = [];
  const wait = (ms: number) => new Promise<void>((end) => void waits.push({ ms, end }));
  const { apiKeys, accounts } = identity.connect({ env: NO_REDIS, wait });
  const key = await createSomeKey(identity);
  const { account, session } = await signUpSomeone(identity);
  const { principal } = await identity.authentication.authenticate({ credential: sessionCredential(session.token) });
  const changes = [
    apiKeys.revokeApiKey(refOf(key)),
    accounts.signOut({ accountId: account.id, sessionId: present(principal).credentialId }),
  ];
  let answered = 0;
  for (const change of changes) void change.then(() => (answered += 1));
  await eventually(() => waits.length === 2);
  expect(await outcomeOf(use(key))).toBe('api_key_revoked');
  expect(waits.map(({ ms }) => ms)).toEqual([3_000, 3_000]);
  expect(answered).toBe(0);
  for (const { end } of waits) end();
  await Promise.all(changes);
});

test('epochs are deleted in batches, so that no command blocks Redis for long', async () => {
  const batches: number[] = [];
  const redis = { del: async (keys: string[]) => batches.push(keys.length), eval: async () => '' };
  const epochs = createEpochs(redis as unknown as Redis, createLogger('identity', 'silent'));
  await epochs.end(...Array.from({ length: 2_500 }, (_, i) => `epoch-${i}`));
  expect(batches).toEqual([1_000, 1_000, 500]);
});

test('the service is ready without Redis, and not without its database', async () => {
  const withoutRedis = identity.connect({ env: NO_REDIS });
  await expect(withoutRedis.service.checkReady()).resolves.toBeUndefined();
  const withoutDatabase = identity.connect({ env: { DATABASE_URL: 'postgres://localhost:1/none' } });
  await expect(withoutDatabase.service.checkReady()).rejects.toThrow();
});
