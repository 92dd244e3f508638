import { createRouterTransport } from '@connectrpc/connect';
import { createDatabase, type Database } from '@latchkey/kit/database/database';
import { createLogger } from '@latchkey/kit/log/logger';
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
import { DAY_MS } from '../testing/test-clock.ts';
import { createDeletionFollower } from './deleted-application.consumer.ts';

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

/** Reconciles as a process does that has just started. */
function startReconciling({ clock = identity.clock.now } = {}) {
  const appsTransport = createRouterTransport(({ service }) => void service(ApplicationService, identity.apps.impl));
  const { reconcile } = createDeletionFollower({ db: own.db, clock, logger }, { redisUrl: redis.url, appsTransport });
  return async (signal = new AbortController().signal) => reconcile(signal);
}

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

describe('a reconciliation', () => {
  it('clears what no job announced, however long ago it was, and nothing twice', async () => {
    const stale: Stale[] = [];
    for (let i = 0; i < 10; i += 1) stale.push(await createStale(i * DAY_MS));
    const reconcile = startReconciling();
    await reconcile();
    for (const one of stale) await isCleared(one);
    const sent = await statementsOf(() => reconcile());
    expect(sent.filter(({ text }) => !text.trim().startsWith('select'))).toEqual([]);
  });

  it('leaves keys of other accounts that name the same application', async () => {
    const stale = await createStale(0);
    const stranger = await createStale(0);
    const list = [stale.gone];
    await identity.db.query('update api_key set application_ids = $2 where account_id = $1', [stranger.accountId, list]);
    await startReconciling()();
    await isCleared(stale);
    expect(await listOf(stranger)).toEqual(list);
  });

  it('ends after the current batch of keys when it is aborted', async () => {
    const stale = await createStale(0);
    await identity.db.query(
      `insert into api_key (id, account_id, name, public_id, key_hash, key_last4, scopes, all_applications, application_ids, created_at, updated_at)
       select gen_random_uuid(), account_id, name, public_id || i, '-', '-', scopes, false, application_ids, created_at, updated_at
       from api_key, generate_series(1, 119) i where account_id = $1`,
      [stale.accountId],
    );
    const stop = new AbortController();
    const startedAt = identity.clock.now();
    // The time is asked for once at the start, and once for each batch.
    let asked = 0;
    const clock = () => {
      asked += 1;
      if (asked === 3) stop.abort();
      return startedAt;
    };
    await startReconciling({ clock })(stop.signal);
    const naming = 'select count(*)::int as count from api_key where application_ids @> array[$1::uuid]';
    expect((await identity.db.query(naming, [stale.gone])).rows).toEqual([{ count: 20 }]);
    await startReconciling()();
    expect((await identity.db.query(naming, [stale.gone])).rows).toEqual([{ count: 0 }]);
  });
});

describe('a service that starts', () => {
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
