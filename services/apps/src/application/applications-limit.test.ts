import { randomUUID } from 'node:crypto';
import { refusalOf } from '@latchkey/testkit/refusal';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { waitersForLocks } from '../testing/rows.ts';
import { type AppsInstance, startTestApps, type TestApps } from '../testing/test-apps.ts';

let apps: TestApps;
let limited: AppsInstance;
beforeAll(async () => {
  apps = await startTestApps();
  limited = apps.connect({ env: { APPLICATIONS_LIMIT: '3' } });
});
afterAll(() => apps.stop());

const create = (accountId: string, { client }: AppsInstance = limited) =>
  client.createApplication({ accountId, name: 'Application' });
const usageOf = async (accountId: string, { client }: AppsInstance = limited) => {
  const { applicationCount, applicationCountMax } = await client.getApplicationUsage({ accountId });
  return [applicationCount, applicationCountMax];
};

it('an account has as many applications as it may have, however many are made at once and by whichever process', async () => {
  const [accountId, other] = [randomUUID(), randomUUID()];
  const second = apps.connect({ env: { APPLICATIONS_LIMIT: '3' } });
  const calls = Array.from({ length: 20 }, (_, i) => create(accountId, i % 2 === 0 ? limited : second));
  const [outcomes] = await Promise.all([Promise.allSettled(calls), create(other)]);
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
  expect(await usageOf(accountId)).toEqual([3n, 3n]);
  expect(await usageOf(other)).toEqual([1n, 3n]);
  const refusal = await refusalOf(create(accountId));
  expect(refusal).toMatchObject({ reason: 'applications_limit_exceeded', kind: 'too_large', code: 'limit_exceeded' });
});

it('creations of one account leave connections to others while they wait', async () => {
  const [accountId, other] = [randomUUID(), randomUUID()];
  const { client } = apps.connect({ env: { DATABASE_POOL_MAX: '2' } });
  const blocker = await apps.db.connect();
  await blocker.query('begin');
  await blocker.query(`select pg_advisory_xact_lock(hashtextextended('applications/' || $1, 0))`, [accountId]);
  const creations = Array.from({ length: 3 }, () => client.createApplication({ accountId, name: 'Application' }));
  try {
    await waitersForLocks(apps.db, 1);
    expect(await client.listApplications({ accountId: other })).toMatchObject({ applications: [] });
  } finally {
    await blocker.query('commit');
    blocker.release();
  }
  await Promise.all(creations);
});

it('a deletion makes room for another', async () => {
  const accountId = randomUUID();
  const [{ applicationId }] = [await create(accountId), await create(accountId), await create(accountId)];
  await expect(create(accountId)).rejects.toThrow();
  await limited.client.deleteApplication({ accountId, applicationId });
  await create(accountId);
  await expect(create(accountId)).rejects.toThrow();
});

it('the limit is 200 unless it is set', async () => {
  expect(await usageOf(randomUUID(), apps)).toEqual([0n, 200n]);
});

it('a limit of none refuses the first', async () => {
  const none = apps.connect({ env: { APPLICATIONS_LIMIT: '0' } });
  expect((await refusalOf(create(randomUUID(), none))).reason).toBe('applications_limit_exceeded');
});

it('what is no account is refused', async () => {
  expect((await refusalOf(apps.client.getApplicationUsage({ accountId: 'x' }))).reason).toBe('account_id_invalid');
});
