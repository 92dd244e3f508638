import { createTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { startTcpProxy, type TcpProxy } from '@latchkey/testkit/tcp-proxy';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { type DeletionJobs, deletion, startDeletionJobs } from './testing/deletion-jobs.fixture.ts';
import { migrateIdentity, startTestIdentity, type TestIdentity } from './testing/identity.fixture.ts';
import { createSomeKey, someAccountId } from './testing/sample.fixture.ts';

/** A statement is waited for up to 4.5 s, and a job up to 5 s. */
const STOP_WITHIN_MS = 7_000;

let database: TestDatabase;
let jobs: DeletionJobs;
let identity: TestIdentity;
let wayToDatabase: TcpProxy;
let wayToRedis: TcpProxy;
beforeAll(async () => {
  database = await createTestDatabase({ schema: 'identity', migrate: migrateIdentity });
  jobs = await startDeletionJobs();
  identity = await startTestIdentity({ databaseUrl: database.url, redisUrl: jobs.redis.url });
  // The instances below are to have all the work.
  await identity.service.stop();
});
afterAll(async () => {
  await identity.stop();
  await jobs.stop();
  await database.drop();
});
beforeEach(async () => {
  [wayToDatabase, wayToRedis] = await Promise.all([startTcpProxy(database.url), startTcpProxy(jobs.redis.url)]);
  onTestFinished(async () => {
    await Promise.all([wayToDatabase.close(), wayToRedis.close()]);
    await jobs.redis.empty();
  });
});

/** An instance that has done a job, by ways to its servers that can be broken. */
async function startInstance() {
  const instance = await identity.connect({ env: { DATABASE_URL: wayToDatabase.url, REDIS_URL: wayToRedis.url } });
  const accountId = await someAccountId(instance);
  const clear = async () => {
    const applicationIds = identity.apps.createApplications(accountId, 1);
    await createSomeKey(instance, { accountId, allApplications: false, applicationIds });
    return deletion(accountId, applicationIds[0] ?? '');
  };
  await jobs.add(await clear());
  await jobs.done();
  return { instance, nextJob: await clear() };
}

const isWorkedOn = () => jobs.redis.ask(async (client) => (await client.llen('latchkey:queue:identity:active')) > 0);

/** Connections that wait for jobs. */
async function workers(): Promise<number> {
  const list = await jobs.redis.ask((client) => client.client('LIST'));
  return String(list).split('name=latchkey-identity-deletions').length - 1;
}

async function stopTimeMs(stop: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  await stop();
  return performance.now() - startedAt;
}

describe('a stop', () => {
  it('takes no time when there is nothing to do, and leaves no connection', async () => {
    const { instance } = await startInstance();
    expect(await workers()).toBeGreaterThan(0);
    expect(await stopTimeMs(instance.service.stop)).toBeLessThan(1_000);
    await eventually(async () => expect(await workers()).toBe(0));
  });

  it('gives up a look that apps does not answer', async () => {
    identity.apps.stayingSilent = true;
    onTestFinished(() => {
      identity.apps.stayingSilent = false;
    });
    const looks = identity.apps.lookedBackTo.length;
    const { service } = await identity.connect();
    await eventually(() => identity.apps.lookedBackTo.length > looks);
    expect(await stopTimeMs(service.stop)).toBeLessThan(1_000);
    expect(identity.apps.givenUp).toBe(1);
  });

  it.each([
    ['Redis is gone', () => wayToRedis.cut()],
    ['Redis is frozen', async () => wayToRedis.freeze()],
    ['PostgreSQL is gone', () => wayToDatabase.cut()],
    ['PostgreSQL is frozen', async () => wayToDatabase.freeze()],
    [
      'both are frozen',
      async () => {
        wayToDatabase.freeze();
        wayToRedis.freeze();
      },
    ],
  ])('ends when %s', async (_what, breakIt) => {
    const { instance } = await startInstance();
    await breakIt();
    expect(await stopTimeMs(instance.service.stop)).toBeLessThan(STOP_WITHIN_MS);
  });

  it('ends in the middle of a job that PostgreSQL does not answer', async () => {
    const { instance, nextJob } = await startInstance();
    wayToDatabase.freeze();
    await jobs.add(nextJob);
    await eventually(isWorkedOn);
    expect(await stopTimeMs(instance.service.stop)).toBeLessThan(STOP_WITHIN_MS);
  });

  it('ends in the middle of a look that PostgreSQL does not answer', async () => {
    const env = { DATABASE_URL: wayToDatabase.url, REDIS_URL: wayToRedis.url };
    identity.apps.deleteApplication(crypto.randomUUID(), crypto.randomUUID(), identity.clock.now());
    wayToDatabase.freeze();
    const looks = identity.apps.lookedBackTo.length;
    const { service } = await identity.connect({ env });
    await eventually(() => identity.apps.lookedBackTo.length > looks);
    expect(await stopTimeMs(service.stop)).toBeLessThan(STOP_WITHIN_MS);
  });
});
