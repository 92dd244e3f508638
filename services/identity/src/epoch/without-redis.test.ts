import { eventually } from '@latchkey/testkit/eventually';
import { expect, test } from 'vitest';
import { openTestIdentity, outcomeOf } from '../testing/identity.fixture.ts';
import {
  createSomeKey,
  keyCredential,
  present,
  type SomeKey,
  sessionCredential,
  signUpSomeone,
} from '../testing/sample.fixture.ts';

const identity = await openTestIdentity();

const NO_REDIS = { REDIS_URL: 'redis://localhost:1' };

const use = ({ plaintextKey }: SomeKey) => identity.authentication.authenticate({ credential: keyCredential(plaintextKey) });
const refOf = ({ accountId, apiKey }: SomeKey) => ({ accountId, apiKeyId: apiKey.id });

test('without Redis, an answer has no epoch', async () => {
  const key = await createSomeKey(identity);
  const { session } = await signUpSomeone(identity);
  const { authentication } = await identity.connect({ env: NO_REDIS });
  for (const credential of [keyCredential(key.plaintextKey), sessionCredential(session.token)]) {
    const answer = await authentication.authenticate({ credential });
    expect(answer).toMatchObject({ epochKey: '', epoch: '' });
    expect(answer.principal).toBeDefined();
  }
});

test('without Redis, a revocation is answered once every principal has grown too old', async () => {
  const waits: Array<{ ms: number; end: () => void }> = [];
  const wait = (ms: number) => new Promise<void>((end) => void waits.push({ ms, end }));
  const { apiKeys, accounts } = await identity.connect({ env: NO_REDIS, wait });
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

test('the service is ready without Redis, and not without its database', async () => {
  const withoutRedis = await identity.connect({ env: NO_REDIS });
  await expect(withoutRedis.service.checkReady()).resolves.toBeUndefined();
  const withoutDatabase = await identity.connect({ env: { DATABASE_URL: 'postgres://localhost:1/none' } });
  await expect(withoutDatabase.service.checkReady()).rejects.toThrow();
});
