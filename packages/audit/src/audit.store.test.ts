import { randomUUID } from 'node:crypto';
import { explain, type Statement, statementsOf } from '@latchkey/testkit/postgres/statements';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { SERVICE_ORIGIN } from './actor.ts';
import { recordAuditUpTo } from './record.ts';
import { deleteOldEntries, replaceSurplus, selectSurplus } from './retention.store.ts';
import { openTestAuditLog } from './testing/audit-table.ts';

const ENTRIES = 50_000;

const log = await openTestAuditLog();
const pool = new pg.Pool({ connectionString: log.url, options: '-c search_path=shop' });
/** An account with half of the entries: a tenth of one application, a hundredth of one action. */
const [accountId, applicationId] = [randomUUID(), randomUUID()];
beforeAll(async () => {
  await pool.query(
    `insert into audit_entry (id, account_id, at, action, actor, subject, subject_id, application_id, changes)
      select gen_random_uuid(), case when i % 2 = 0 then $1::uuid else md5((i % 199)::text)::uuid end, now() - i * interval '1 minute',
        case when i % 100 = 0 then 'account.deleted' else 'account.created' end, 'service', 'account', $1,
        case when i % 10 = 0 then $2::uuid when i % 3 = 0 then md5((i % 1000)::text)::uuid end, '{}'
      from generate_series(1, $3::int) i`,
    [accountId, applicationId, ENTRIES],
  );
  await pool.query('vacuum analyze audit_entry');
});
afterAll(() => pool.end());

const before = { before: { at: { seconds: BigInt(Math.floor(Date.now() / 1000) - 86_400), nanos: 0 }, id: randomUUID() } };
const list = (request: object) => () => log.client.listAuditEntries({ accountId, limit: 100, ...request });
const ofApplication = { case: 'applicationId', value: applicationId };
const ofAction = { case: 'action', value: 'account.deleted' };
const attempt = { accountId, action: 'account.created', subject: { kind: 'account', id: accountId } } as const;
const surplus = { account_id: accountId, action: 'account.created', day: new Date(Date.now() - 2 * 86_400_000) };

it.each<[string, () => Promise<unknown>, RegExp, index: string, rowsMax: number]>([
  ['a page', list(before), /limit/, 'audit_entry_of_account', 101],
  ['a page of an application', list({ filter: ofApplication, ...before }), /limit/, 'audit_entry_of_application', 101],
  ['a page of an action', list({ filter: ofAction, ...before }), /limit/, 'audit_entry_of_action', 101],
  ['deleting old entries', () => deleteOldEntries(log.pool, 30, 100), /delete/, 'audit_entry_age', 100],
  [
    'counting attempts',
    () => log.db.transaction().execute((tx) => recordAuditUpTo(tx, SERVICE_ORIGIN, attempt, 5)),
    /count\(\*\)/,
    'audit_entry_of_action',
    30,
  ],
  ['finding too many entries', () => selectSurplus(log.pool, 1, 10, 100), /group by/, 'audit_entry_of_action', 11],
  ['replacing them', () => replaceSurplus(log.pool, surplus, 10, 100), /as existing/, 'audit_entry_of_action', 110],
])('%s reads no more than it needs from its index', async (_what, run, pattern, index, rowsMax) => {
  const statement = (await statementsOf(run)).find(({ text }) => pattern.test(text));
  const plan = await explain(pool, statement as Statement);
  expect(plan.map((node) => node['Node Type'])).not.toContain('Seq Scan');
  const scans = plan.filter((node) => node['Index Name'] === index);
  expect(scans.length).toBeGreaterThan(0);
  for (const scan of scans) expect(scan['Actual Rows']).toBeLessThanOrEqual(rowsMax);
});
