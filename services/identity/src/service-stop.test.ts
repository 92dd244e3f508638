import { eventually } from '@latchkey/testkit/eventually';
import { startTcpProxy } from '@latchkey/testkit/tcp-proxy';
import { expect, it, onTestFinished } from 'vitest';
import { deletion, startDeletionJobs } from './testing/deletion-jobs.ts';
import { openTestIdentity } from './testing/identity.ts';
import { createSomeKey, someAccountId } from './testing/sample.ts';

/** A statement times out after 4.5 s, and a job under way has 5 s. */
const STOP_MS_MAX = 7_000;

const jobs = await startDeletionJobs();
const identity = await openTestIdentity({ REDIS_URL: jobs.redis.url });

async function stopTimeMs(stop: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  await stop();
  return performance.now() - startedAt;
}

it('stops quickly while the apps service does not respond', async () => {
  identity.apps.isSilent = true;
  onTestFinished(() => {
    identity.apps.isSilent = false;
  });
  const asked = identity.apps.deletedSince.length;
  const { service } = identity.connect();
  await service.start();
  await eventually(() => identity.apps.deletedSince.length > asked);
  expect(await stopTimeMs(service.stop)).toBeLessThan(1_000);
});

it.each([
  ['Redis is frozen', ['redis']],
  ['PostgreSQL is frozen in the middle of a job', ['postgres']],
  ['both are frozen', ['redis', 'postgres']],
])('stops in time while %s', async (_what, frozen) => {
  const postgres = await startTcpProxy(identity.env.DATABASE_URL ?? '');
  const redis = await startTcpProxy(jobs.redis.url);
  onTestFinished(async () => {
    await Promise.all([postgres.close(), redis.close()]);
    await jobs.redis.empty();
  });
  const instance = identity.connect({ env: { DATABASE_URL: postgres.url, REDIS_URL: redis.url } });
  await instance.service.start();
  const accountId = await someAccountId(instance);
  const applicationIds = identity.apps.createApplications(accountId, 2);
  await createSomeKey(instance, { accountId, allApplications: false, applicationIds });
  await jobs.add(deletion(accountId, applicationIds[0] ?? ''));
  await jobs.done();
  if (frozen.includes('postgres')) postgres.freeze();
  await jobs.add(deletion(accountId, applicationIds[1] ?? ''));
  const isActive = () => jobs.redis.ask(async (client) => (await client.llen('latchkey:queue:identity:active')) > 0);
  if (frozen.includes('postgres')) await eventually(isActive);
  if (frozen.includes('redis')) redis.freeze();
  expect(await stopTimeMs(instance.service.stop)).toBeLessThan(STOP_MS_MAX);
});
