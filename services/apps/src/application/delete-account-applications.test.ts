import { AS_CALLER, auditReader } from '@latchkey/audit/testing/audit-reader';
import { statementsOf } from '@latchkey/testkit/postgres/statements';
import { refusalOf } from '@latchkey/testkit/refusal';
import { expect, it } from 'vitest';
import { eventsOf, insertCopies } from '../testing/rows.ts';
import { useTestApps } from '../testing/test-apps.ts';
import { DELETED_AT_ONCE_MAX } from './application.ts';

const apps = useTestApps();

it('the applications of an account are deleted in sets, each with its event and entry, and no other account’s', async () => {
  const ref = await apps.createOwned();
  const { accountId } = ref;
  const other = await apps.createOwned();
  await insertCopies(apps.db, ref, 2 * DELETED_AT_ONCE_MAX);
  const { rows } = await apps.db.query<{ id: string }>('select id from application where account_id = $1', [accountId]);
  const step = async () => (await apps.client.deleteAccountApplications({ accountId }, AS_CALLER)).hasMore;
  const count = async (id: string) => (await apps.client.getApplicationUsage({ accountId: id })).applicationCount;
  const statements = await statementsOf(async () => expect(await step()).toBe(true));
  expect(await count(accountId)).toBe(BigInt(DELETED_AT_ONCE_MAX + 1));
  expect(statements.length).toBeLessThan(10);
  await Promise.all([step(), step()]);
  expect([await step(), await step()]).toEqual([false, false]);
  expect([await count(accountId), await count(other.accountId)]).toEqual([0n, 1n]);
  for (const { id } of [rows[0], rows.at(-1)].filter((row) => row !== undefined)) {
    const events = await eventsOf(apps.db, { applicationId: id });
    expect(events).toMatchObject([{ account_id: accountId, sequence: '1', type: 'deleted' }]);
  }
  const all = await apps.db.query(`select from application_event where type = 'deleted' and application_id = any($1)`, [
    rows.map(({ id }) => id),
  ]);
  const entries = (await auditReader(apps.service.routes)(accountId)).filter(({ action }) => action === 'application.deleted');
  expect([all.rowCount, new Set(entries.map(({ actor }) => actor))]).toEqual([2 * DELETED_AT_ONCE_MAX + 1, new Set(['session'])]);
  const written = await apps.db.query(`select from audit_entry where action = 'application.deleted' and account_id = $1`, [
    accountId,
  ]);
  expect(written.rowCount).toBe(2 * DELETED_AT_ONCE_MAX + 1);
  for (const text of ['', 'x'])
    expect(await refusalOf(apps.client.deleteAccountApplications({ accountId: text }))).toMatchObject({
      reason: 'account_id_invalid',
    });
});
