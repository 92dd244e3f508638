import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { createTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DeletionJobs, deletion, startDeletionJobs } from '../testing/deletion-jobs.fixture.ts';
import { migrateIdentity, outcomeOf, startTestIdentity, type TestIdentity } from '../testing/identity.fixture.ts';
import { createSomeKey, type SomeKey, someAccountId } from '../testing/sample.fixture.ts';
import { MINUTE_MS } from '../testing/test-clock.ts';
import { waitersForLocks } from '../testing/waiters.ts';

let database: TestDatabase;
let jobs: DeletionJobs;
let identity: TestIdentity;
beforeAll(async () => {
  database = await createTestDatabase({ schema: 'identity', migrate: migrateIdentity });
  jobs = await startDeletionJobs();
  identity = await startTestIdentity({ databaseUrl: database.url, redisUrl: jobs.redis.url });
});
afterAll(async () => {
  await identity.stop();
  await jobs.stop();
  await database.drop();
});

/** A key that is restricted to two applications of its account, of which the first is about to be deleted, and a third application. */
async function createRestrictedKey() {
  const accountId = await someAccountId(identity);
  const [gone = '', second = '', third = ''] = identity.apps.createApplications(accountId, 3);
  const key = await createSomeKey(identity, { accountId, allApplications: false, applicationIds: [gone, second] });
  return { ...key, gone, second, third };
}
type RestrictedKey = Awaited<ReturnType<typeof createRestrictedKey>>;

const update = ({ accountId, apiKey }: SomeKey, change: object) =>
  identity.apiKeys.updateApiKey({ ...change, accountId, apiKeyId: apiKey.id });
const stored = async ({ accountId }: SomeKey) => (await identity.apiKeys.listApiKeys({ accountId })).apiKeys[0];

/** Has the application deleted; the job is done some time later. */
async function remove({ accountId, gone }: RestrictedKey) {
  identity.apps.deleteApplication(accountId, gone, identity.clock.now());
  await jobs.add(deletion(accountId, gone));
}

/** Lets things that change a key begin one after the other, each having read what it reads before the first is done. */
async function atOnce(key: SomeKey, ...changes: Array<() => Promise<unknown>>): Promise<unknown[]> {
  const client = await identity.db.connect();
  await client.query('begin');
  await client.query('select 1 from api_key where id = $1 for update', [key.apiKey.id]);
  const outcomes: Array<Promise<unknown>> = [];
  for (const change of changes) {
    outcomes.push(change());
    await eventually(() => waitersForLocks(identity.db, outcomes.length));
  }
  await client.query('commit');
  client.release();
  const settled = await Promise.all(outcomes);
  await jobs.done();
  return settled;
}

describe.each(['before', 'after'])('a change of a key that is under way, begun %s a deletion’s job', (order) => {
  /** Has both done at once, in the order that the tests are about. */
  const withDeletion = (key: RestrictedKey, change: object) => {
    const both = [() => outcomeOf(update(key, change)), () => remove(key)];
    return atOnce(key, ...(order === 'before' ? both : both.reverse()));
  };

  it.each([
    ['name', { name: 'Together' }],
    ['scopes', { scopes: ['account:read'] }],
  ])('of its %s is kept, and so is the removal', async (_what, expected) => {
    const key = await createRestrictedKey();
    const change = 'scopes' in expected ? { scopes: { scopes: expected.scopes } } : expected;
    expect(await withDeletion(key, change)).toContain('done');
    expect(await stored(key)).toMatchObject({ ...expected, allApplications: false, applicationIds: [key.second] });
  });

  it('that opens it to all applications leaves it open, with an empty list', async () => {
    const key = await createRestrictedKey();
    expect(await withDeletion(key, { allApplications: true })).toContain('done');
    expect(await stored(key)).toMatchObject({ allApplications: true, applicationIds: [] });
  });

  it('of its list to others that stay is kept', async () => {
    const key = await createRestrictedKey();
    expect(await withDeletion(key, { applicationIds: { applicationIds: [key.third] } })).toContain('done');
    expect(await stored(key)).toMatchObject({ allApplications: false, applicationIds: [key.third] });
  });

  it('that revokes it is kept', async () => {
    const key = await createRestrictedKey();
    const revoke = () => identity.apiKeys.revokeApiKey({ accountId: key.accountId, apiKeyId: key.apiKey.id });
    await atOnce(key, ...(order === 'before' ? [revoke, () => remove(key)] : [() => remove(key), revoke]));
    expect(await stored(key)).toMatchObject({ revokedAt: expect.anything(), applicationIds: [key.second] });
  });
});

describe('a change under way', () => {
  it('that takes the application out itself, before the job, is all that updatedAt tells of', async () => {
    const key = await createRestrictedKey();
    const changedAt = timestampFromDate(identity.clock.now());
    const change = () => outcomeOf(update(key, { applicationIds: { applicationIds: [key.third] } }));
    const removeLater = () => {
      identity.clock.advance(MINUTE_MS);
      return remove(key);
    };
    await atOnce(key, change, removeLater);
    expect(await stored(key)).toMatchObject({ applicationIds: [key.third], updatedAt: changedAt });
  });
});

describe('a list that names an application while it is being deleted', () => {
  const list = ({ gone, third }: RestrictedKey) => ({ applicationIds: { applicationIds: [third, gone] } });

  it('written before the deletion’s job is cleared by it', async () => {
    const key = await createRestrictedKey();
    expect(
      await atOnce(
        key,
        () => outcomeOf(update(key, list(key))),
        () => remove(key),
      ),
    ).toContain('done');
    expect(await stored(key)).toMatchObject({ applicationIds: [key.third] });
  });

  it('written after it is cleared by the next look', async () => {
    const key = await createRestrictedKey();
    const client = await identity.db.connect();
    await client.query('begin');
    await client.query('select 1 from api_key where id = $1 for update', [key.apiKey.id]);
    // Checked while the application was there, which is before the row is waited for.
    const outcome = outcomeOf(update(key, list(key)));
    await eventually(() => waitersForLocks(identity.db, 1));
    // As the job does.
    await client.query('update api_key set application_ids = $2 where id = $1', [key.apiKey.id, [key.second]]);
    identity.apps.deleteApplication(key.accountId, key.gone, identity.clock.now());
    await client.query('commit');
    client.release();
    expect(await outcome).toBe('done');
    expect((await stored(key))?.applicationIds).toEqual([key.third, key.gone]);
    // As one that has just started does.
    await identity.connect();
    await eventually(async () => expect((await stored(key))?.applicationIds).toEqual([key.third]));
  });
});

describe('jobs of several applications that the same keys name', () => {
  it('done at once by several processes all have their effect', async () => {
    const accountId = await someAccountId(identity);
    const applicationIds = identity.apps.createApplications(accountId, 40);
    for (let i = 0; i < 15; i += 1) {
      const list = i % 2 ? applicationIds : applicationIds.toReversed();
      await createSomeKey(identity, { accountId, allApplications: false, applicationIds: list });
    }
    await Promise.all([identity.connect(), identity.connect(), identity.connect()]);
    const [stays = '', ...gone] = applicationIds;
    await jobs.add(...[...gone, ...gone].map((id) => deletion(accountId, id)));
    await jobs.done();
    const { apiKeys } = await identity.apiKeys.listApiKeys({ accountId });
    expect(apiKeys.map((key) => key.applicationIds)).toEqual(Array(15).fill([stays]));
    expect(await jobs.failed()).toBe(0);
  });
});
