import { expect, test } from 'vitest';
import { MINUTE_MS, openTestIdentity, outcomeOf } from '../testing/identity.ts';
import { createSomeKey, keyCredential, type SomeKey } from '../testing/sample.ts';

const identity = await openTestIdentity();

const use = ({ plaintextKey }: SomeKey, clientIp: string) =>
  identity.authentication.authenticate({ credential: keyCredential(plaintextKey), clientIp });

/** The last use in the key's record. */
async function lastUse({ accountId }: SomeKey) {
  const [apiKey] = (await identity.apiKeys.listApiKeys({ accountId })).apiKeys;
  const seconds = apiKey?.lastUsedAt?.seconds;
  return { at: seconds === undefined ? undefined : new Date(Number(seconds) * 1_000), ip: apiKey?.lastUsedIp };
}

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

test('a key is valid also when its use can’t be recorded', async () => {
  const key = await createSomeKey(identity);
  await identity.db.query('alter table api_key add constraint refuse_use check (last_used_at is null) not valid');
  expect(await outcomeOf(use(key, '192.0.2.1'))).toBe('done');
  await identity.db.query('alter table api_key drop constraint refuse_use');
  expect((await lastUse(key)).at).toBeUndefined();
});
