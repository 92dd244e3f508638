import { randomUUID } from 'node:crypto';
import { type Statement, statementsOf } from '@latchkey/testkit/statements';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestAuditLog, type TestAuditLog } from '../testing/audit-table.ts';
import { BY_ITSELF } from './actor.ts';
import { recordAuditUpTo } from './audit-entry.ts';
import { trimAuditLog } from './audit-sweeper.ts';
import { leaveOutEntries } from './left-out.ts';

const ENTRIES = 50_000;

let log: TestAuditLog;
/** Forgets prepared statements, which a pool's would miss. */
let client: pg.Client;
/** An account that has half of the entries, each tenth of one application and each hundredth of one action. */
const [accountId, applicationId] = [randomUUID(), randomUUID()];
beforeAll(async () => {
  log = await startTestAuditLog();
  client = new pg.Client({ connectionString: log.url, options: '-c search_path=shop' });
  await client.connect();
  await client.query(
    `insert into audit_entry (id, account_id, at, action, actor, subject, subject_id, application_id, changes)
      select gen_random_uuid(), case when i % 2 = 0 then $1::uuid else md5((i % 199)::text)::uuid end, now() - i * interval '1 minute',
        case when i % 100 = 0 then 'thing.rare' else 'thing.done' end, 'service', 'account', $1,
        case when i % 10 = 0 then $2::uuid when i % 3 = 0 then md5((i % 1000)::text)::uuid end, '{}'
      from generate_series(1, $3::int) i`,
    [accountId, applicationId, ENTRIES],
  );
  await client.query('vacuum analyze audit_entry');
});
afterAll(async () => {
  await client.end();
  await log.stop();
});

interface Plan {
  readonly 'Node Type': string;
  readonly 'Index Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly Plan[];
}

const withChildren = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(withChildren)];

/** The nodes of the plan of a named, and so in time generic, statement; nothing that it changes stays. */
async function planOf(statement: Statement, mode: string): Promise<Plan[]> {
  try {
    await client.query('begin');
    await client.query(`set local plan_cache_mode = ${mode}`);
    await client.query(`prepare explained as ${statement.text}`);
    const toText = (value: unknown) => (value instanceof Date ? value.toISOString() : String(value));
    const literals = statement.values.map((value) => client.escapeLiteral(toText(value))).join(', ');
    const { rows } = await client.query(`explain (analyze, format json) execute explained (${literals})`);
    return withChildren(rows[0]['QUERY PLAN'][0].Plan);
  } finally {
    await client.query('rollback');
    await client.query('deallocate all');
  }
}

const before = { before: { at: { seconds: BigInt(Math.floor(Date.now() / 1000) - 86_400), nanos: 0 }, id: randomUUID() } };
const list = (request: object) => log.client.listAuditEntries({ accountId, limit: 100, ...request });

describe.each(['force_custom_plan', 'force_generic_plan'])('with %s', (mode) => {
  it.each([
    ['the first page', {}, 'audit_entry_of_account'],
    ['a further page', before, 'audit_entry_of_account'],
    [
      'a page of an application',
      { filter: { case: 'applicationId', value: applicationId }, ...before },
      'audit_entry_of_application',
    ],
    ['a page of an action', { filter: { case: 'action', value: 'thing.rare' }, ...before }, 'audit_entry_of_action'],
  ])('%s is read from its index in order, and nothing else is', async (_what, request, index) => {
    const [statement] = await statementsOf(() => list(request));
    const plan = await planOf(statement as Statement, mode);
    expect(plan.map((node) => [node['Node Type'], node['Index Name']])).toEqual([
      ['Limit', undefined],
      ['Index Scan', index],
    ]);
    expect(plan[1]).toMatchObject({ 'Actual Rows': 101 });
    expect(plan[1]?.['Rows Removed by Filter'] ?? 0).toBe(0);
  });

  it('trimming looks at the oldest entries alone', async () => {
    const sent = await statementsOf(() => trimAuditLog({ pool: log.pool, retentionDays: 30 }, new AbortController().signal));
    const plan = await planOf(sent[0] as Statement, mode);
    const nodes = plan.map((node) => node['Node Type']);
    expect(nodes).not.toContain('Seq Scan');
    expect(nodes).not.toContain('Sort');
    expect(plan.flatMap((node) => node['Index Name'] ?? [])).toEqual(expect.arrayContaining(['audit_entry_age']));
  });

  it('what is counted in an hour is counted from its index, and nothing before that hour is looked at', async () => {
    const event = { accountId, action: 'thing.done', subject: { kind: 'account', id: accountId } } as const;
    const sent = await statementsOf(() => log.db.transaction().execute((tx) => recordAuditUpTo(tx, BY_ITSELF, event, 5)));
    const counting = sent.find(({ text }) => text.includes('count(*)')) as Statement;
    const plan = await planOf(counting, mode);
    const scans = plan.filter((node) => node['Index Name'] !== undefined);
    expect(scans).toMatchObject([{ 'Index Name': 'audit_entry_of_action' }]);
    // One entry in two minutes.
    expect(scans[0]?.['Actual Rows']).toBeLessThanOrEqual(30);
  });

  it('what is too much in a day is looked for among what was written in the last hour, and counted and left out by its index', async () => {
    const leavingOut = { pool: log.pool, entriesPerDay: 10 };
    const sent = await statementsOf(() => leaveOutEntries(leavingOut, new AbortController().signal));
    const planOfThat = (part: string) => planOf(sent.find(({ text }) => text.includes(part)) as Statement, mode);
    const plans = [await planOfThat('group by account_id, action'), await planOfThat('as kept')];
    for (const plan of plans) {
      expect(plan.filter((node) => node['Node Type'] === 'Seq Scan')).toEqual([]);
      const scans = plan.filter((node) => node['Index Name'] === 'audit_entry_of_action');
      expect(scans).toHaveLength(1);
    }
    expect(plans[0]?.flatMap((node) => node['Index Name'] ?? [])).toContain('audit_entry_age');
    // Nothing beyond the first that is too much.
    for (const node of plans[0] ?? [])
      if (node['Index Name'] === 'audit_entry_of_action') expect(node['Actual Rows']).toBeLessThanOrEqual(11);
  });
});
