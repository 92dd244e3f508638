import { AS_CALLER, auditReader } from '@latchkey/audit/testing/audit-reader';
import { refusalOf } from '@latchkey/testkit/refusal';
import { expect, it } from 'vitest';
import { eventsOf } from '../testing/rows.ts';
import { range, useTestApps } from '../testing/test-apps.ts';

const apps = useTestApps();

it('the applications of an account are deleted in steps, each with its event and entry, and no other account’s', async () => {
  const { accountId } = await apps.createOwned();
  const other = await apps.createOwned();
  for (const i of range(1, 40)) await apps.client.createApplication({ accountId, name: `Application ${i}` });
  const { applications } = await apps.client.listApplications({ accountId });
  const step = async () => (await apps.client.deleteAccountApplications({ accountId }, AS_CALLER)).hasMore;
  expect(await step()).toBe(true);
  expect((await apps.client.listApplications({ accountId })).applications).toHaveLength(21);
  await Promise.all([step(), step()]);
  expect([await step(), await step()]).toEqual([false, false]);
  for (const { id } of applications) {
    const events = await eventsOf(apps.db, { applicationId: id });
    expect(events).toMatchObject([{ account_id: accountId, sequence: '1', type: 'deleted' }]);
  }
  const entries = await auditReader(apps.service.routes)(accountId);
  expect(entries.filter(({ action, actor }) => action === 'application.deleted' && actor === 'session')).toHaveLength(41);
  expect((await apps.client.listApplications(other)).applications).toHaveLength(1);
  for (const text of ['', 'x'])
    expect(await refusalOf(apps.client.deleteAccountApplications({ accountId: text }))).toMatchObject({
      reason: 'account_id_invalid',
    });
});
