import { Code, type ConnectError, createRouterTransport, type ServiceImpl } from '@connectrpc/connect';
import { createDatabase, type Database } from '@latchkey/kit/database/database';
import { createLogger, type Logger } from '@latchkey/kit/logger';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { createTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { type OwnRedis, startOwnRedis } from '@latchkey/testkit/own-redis';
import { statementsOf } from '@latchkey/testkit/statements';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { IdentityDatabase } from '../db/schema.ts';
import { deletion, startDeletionJobs } from '../testing/deletion-jobs.fixture.ts';
import { migrateIdentity, startTestIdentity, type TestIdentity } from '../testing/identity.fixture.ts';
import { createSomeKey, someAccountId } from '../testing/sample.fixture.ts';
import { DAY_MS, MINUTE_MS } from '../testing/test-clock.ts';
import { createListDeleted } from './deleted-application.client.ts';
import { createDeletionCatchUp } from './deletion-catch-up.ts';

let database: TestDatabase;
let redis: OwnRedis;
let identity: TestIdentity;
let own: Database<IdentityDatabase>;
const logger = createLogger('identity', 'silent');
beforeAll(async () => {
  database = await createTestDatabase({ schema: 'identity', migrate: migrateIdentity });
  redis = await startOwnRedis();
  identity = await startTestIdentity({ databaseUrl: database.url, redisUrl: redis.url });
  own = createDatabase({ url: database.url, schema: 'identity', logger });
});
afterAll(async () => {
  await own.close();
  await identity.stop();
  await redis.remove();
  await database.drop();
});

/** Looks as a process does that has just started. */
function startCatchUp({ impl = identity.apps.impl, ownLogger = logger, clock = identity.clock.now }: LookOptions = {}) {
  const transport = createRouterTransport(({ service }) => void service(ApplicationService, impl));
  const catchUp = createDeletionCatchUp({ db: own.db, clock, logger: ownLogger }, createListDeleted(transport));
  return (signal = new AbortController().signal) => catchUp(signal);
}

interface LookOptions {
  impl?: AppsImpl;
  ownLogger?: Logger;
  clock?: () => Date;
}
type AppsImpl = Partial<ServiceImpl<typeof ApplicationService>>;

/** An account with a key that names two applications. */
async function createKeyOfTwo() {
  const accountId = await someAccountId(identity);
  const applicationIds = identity.apps.createApplications(accountId, 2);
  await createSomeKey(identity, { accountId, allApplications: false, applicationIds });
  const [gone = '', stays = ''] = applicationIds;
  return { accountId, gone, stays };
}
type Stale = Awaited<ReturnType<typeof createKeyOfTwo>>;

/** The same, the first of the applications deleted so long ago, and no job told of it. */
async function createStale(ageMs: number): Promise<Stale> {
  const stale = await createKeyOfTwo();
  identity.apps.deleteApplication(stale.accountId, stale.gone, new Date(identity.clock.now().getTime() - ageMs));
  return stale;
}

const listOf = async ({ accountId }: Pick<Stale, 'accountId'>) =>
  (await identity.apiKeys.listApiKeys({ accountId })).apiKeys[0]?.applicationIds;
const isCleared = async (stale: Stale) => expect(await listOf(stale)).toEqual([stale.stays]);

describe('a look for deletions', () => {
  it('clears what no job told of, however long ago it was and however many pages there are', async () => {
    const stale: Stale[] = [];
    for (let i = 0; i < 10; i += 1) stale.push(await createStale(i * DAY_MS));
    await startCatchUp()();
    for (const one of stale) await isCleared(one);
  });

  it('goes all the way back at first, then 5 minutes behind the look before', async () => {
    const catchUp = startCatchUp();
    const startedAt = identity.clock.now().getTime();
    identity.apps.lookedBackTo.length = 0;
    await catchUp();
    identity.clock.advance(MINUTE_MS / 2);
    await catchUp();
    expect(identity.apps.lookedBackTo).toEqual([new Date(0), new Date(startedAt - 5 * MINUTE_MS)]);
  });

  it('finds what was deleted between two looks, by a clock that is behind', async () => {
    const catchUp = startCatchUp();
    await catchUp();
    identity.clock.advance(MINUTE_MS / 2);
    const stale = await createStale(4 * MINUTE_MS);
    await catchUp();
    await isCleared(stale);
  });

  it('asks once a page, and changes nothing that is clear already', async () => {
    const catchUp = startCatchUp();
    await catchUp();
    identity.clock.advance(DAY_MS);
    await catchUp();
    for (let i = 0; i < 7; i += 1) await createStale(0);
    await catchUp();
    const sent = await statementsOf(() => catchUp());
    expect(sent.map(({ text }) => text.trim().split(' ', 1)[0])).toEqual(['select', 'select', 'select']);
  });

  it('leaves keys of other accounts that name the same application', async () => {
    const stale = await createStale(0);
    const stranger = await createStale(0);
    const list = [stale.gone];
    await identity.db.query('update api_key set application_ids = $2 where account_id = $1', [stranger.accountId, list]);
    await startCatchUp()();
    await isCleared(stale);
    expect(await listOf(stranger)).toEqual(list);
    const sent = await statementsOf(() => startCatchUp()());
    expect(sent.filter(({ text }) => text.startsWith('update'))).toEqual([]);
  });

  it('asks the database nothing where nothing was deleted', async () => {
    const impl: AppsImpl = { listDeletedApplications: () => ({ applications: [], nextPageToken: '' }) };
    expect(await statementsOf(() => startCatchUp({ impl })())).toEqual([]);
  });

  it('that fails goes as far back the next time', async () => {
    const catchUp = startCatchUp();
    const stale = await createStale(3 * DAY_MS);
    identity.apps.failWith(new Error('not now'));
    await expect(catchUp()).rejects.toThrow();
    identity.apps.failWith(undefined);
    await catchUp();
    await isCleared(stale);
  });

  it('ends when it is told to, at once where apps does not answer', async () => {
    const stop = new AbortController();
    const look = startCatchUp({ impl: { listDeletedApplications: () => new Promise(() => {}) } })(stop.signal).then(
      () => undefined,
      (err: ConnectError) => err.code,
    );
    stop.abort();
    expect(await look).toBe(Code.Canceled);
  });

  it('that is told to end goes as far back the next time', async () => {
    const [first, second] = [await createStale(2 * DAY_MS), await createStale(2 * DAY_MS)];
    const stop = new AbortController();
    // A line is written for each application.
    const ownLogger = createLogger('identity', 'info', { write: () => stop.abort() });
    const catchUp = startCatchUp({ ownLogger });
    await catchUp(stop.signal);
    expect([await listOf(first), await listOf(second)]).toEqual([[first.stays], [second.gone, second.stays]]);
    await catchUp();
    await isCleared(second);
  });
});

describe('a look at an application that many keys name', () => {
  it('ends after the batch that it is at when it is told to', async () => {
    const stale = await createStale(0);
    await identity.db.query(
      `insert into api_key (id, account_id, name, public_id, key_hash, key_last4, scopes, all_applications, application_ids, created_at, updated_at)
       select gen_random_uuid(), account_id, name, public_id || i, '-', '-', scopes, false, application_ids, created_at, updated_at
       from api_key, generate_series(1, 119) i where account_id = $1`,
      [stale.accountId],
    );
    const stop = new AbortController();
    const startedAt = identity.clock.now();
    // Told while the second batch is under way, which is when the time is asked for once more.
    let asked = 0;
    const clock = () => {
      asked += 1;
      if (asked === 3) stop.abort();
      return startedAt;
    };
    await startCatchUp({ clock })(stop.signal);
    const naming = 'select count(*)::int as count from api_key where application_ids @> array[$1::uuid]';
    expect((await identity.db.query(naming, [stale.gone])).rows).toEqual([{ count: 20 }]);
    await startCatchUp()();
    expect((await identity.db.query(naming, [stale.gone])).rows).toEqual([{ count: 0 }]);
  });
});

describe('a service that starts', () => {
  it('clears what Redis lost the jobs of', async () => {
    const jobs = await startDeletionJobs();
    const stale = await createStale(0);
    await jobs.add(deletion(stale.accountId, stale.gone));
    await jobs.redis.empty();
    const instance = await identity.connect({ env: { REDIS_URL: jobs.redis.url } });
    await eventually(() => isCleared(stale));
    await instance.service.stop();
    await jobs.stop();
  });

  it('clears what was deleted while Redis is away, and does jobs once it is back', async () => {
    const jobs = await startDeletionJobs();
    const stale = await createStale(0);
    const unlisted = await createKeyOfTwo();
    await jobs.add(deletion(unlisted.accountId, unlisted.gone));
    await jobs.redis.stop();
    const instance = await identity.connect({ env: { REDIS_URL: jobs.redis.url } });
    await eventually(() => isCleared(stale));
    expect(await listOf(unlisted)).toEqual([unlisted.gone, unlisted.stays]);
    await jobs.redis.start();
    await eventually(() => isCleared(unlisted), { timeoutMs: 10_000 });
    await instance.service.stop();
    await jobs.stop();
  });
});
