import { createHash } from 'node:crypto';
import { createRouterTransport } from '@connectrpc/connect';
import { createLogger } from '@latchkey/kit/log/logger';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { explain, type PlanCacheMode, type Statement, statementsOf } from '@latchkey/testkit/postgres/statements';
import { beforeAll, describe, expect, it } from 'vitest';
import { createDeletionFollower, removeFromRestrictions } from '../api-key/restriction.ts';
import { openTestIdentity } from '../testing/identity.ts';

/** Half belong to one account, the others to 1,000; 10 keys list each application. */
const KEYS = 20_000;
const SMALL_ACCOUNTS = 1_000;
const LISTING = 10;
/** A page of deletions, of which keys list the first alone. */
const DELETIONS = 500;

const MODES = ['force_custom_plan', 'force_generic_plan'] as const;

/** The id that `md5(name)::uuid` is in SQL. */
const idOf = (name: string) =>
  createHash('md5')
    .update(name)
    .digest('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');

const FILL_ACCOUNTS = `
  insert into account (id, username, email, password_hash, created_at)
  select md5(name)::uuid, name, name || '@example.test', '-', now()
  from unnest('large'::text || array(select 'small-' || i from generate_series(0, $1::int - 1) i)) name`;

const FILL_KEYS = `
  insert into api_key (id, account_id, name, public_id, key_hash, key_last4, scopes, all_applications, application_ids, created_at, updated_at)
  select gen_random_uuid(), md5(account)::uuid, 'Filler', 'filler-' || i, '-', '-', '{files:read}', false, list, now(), now()
  from generate_series(0, $1::int - 1) i
    cross join lateral (select case when i % 2 = 0 then 'large' else 'small-' || i / 2 % $2 end as account) owner
    cross join lateral (
      select array_agg(md5(account || ' ' || case when i % 2 = 0 then (i / 2 + j) % ($1 / 2) else (i / 2 / $2 + j) % ($1 / 2 / $2) end)::uuid) as list
      from generate_series(1, $3::int) j
    ) lists`;

const identity = await openTestIdentity();
const logger = createLogger('identity', 'silent');

beforeAll(async () => {
  await identity.db.query(FILL_ACCOUNTS, [SMALL_ACCOUNTS]);
  await identity.db.query(FILL_KEYS, [KEYS, SMALL_ACCOUNTS, LISTING]);
  await identity.db.query('vacuum analyze api_key');
});

/** The indexes and rows of keys that a statement reads. */
async function planOf(statement: Statement, mode: PlanCacheMode) {
  const nodes = await explain(identity.db, statement, mode);
  const scans = nodes.filter((node) => node['Relation Name'] === 'api_key' && /Scan/.test(node['Node Type']));
  const read = scans.map((node) => {
    const removed = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0);
    return node['Actual Loops'] * (node['Actual Rows'] + removed);
  });
  return { rowsRead: read.reduce((sum, rows) => sum + rows, 0), indexes: nodes.flatMap((node) => node['Index Name'] ?? []) };
}

describe.each(['large', 'small-7'])('after a deletion of the account %s', (account) => {
  const deleted = { accountId: idOf(account), applicationId: idOf(`${account} 3`) };
  const unlisted = { accountId: deleted.accountId, applicationId: idOf(`${account} unlisted`) };
  const ctx = { db: identity.kysely, clock: () => new Date(), logger };

  it.each(MODES)('its keys are found by the application, with %s', async (mode) => {
    const sent = await statementsOf(() => removeFromRestrictions(ctx, unlisted));
    const update = sent.find(({ text }) => text.startsWith('update')) as Statement;
    const toDeleted = (value: unknown) => (value === unlisted.applicationId ? deleted.applicationId : value);
    const plan = await planOf({ ...update, values: update.values.map(toDeleted) }, mode);
    expect(plan.indexes).toContain('api_key_applications');
    // Each by its application, and then by its id.
    expect(plan.rowsRead).toBe(2 * LISTING);
  });

  it.each(MODES)('a page of deletions is reconciled by application, with %s', async (mode) => {
    const applications = Array.from({ length: DELETIONS }, (_, i) => ({ ...unlisted, applicationId: idOf(`unlisted ${i}`) }));
    const transport = createRouterTransport(({ service }) => {
      service(ApplicationService, { listDeletedApplications: () => ({ applications, nextPageToken: '' }) });
    });
    const sent = await statementsOf(() =>
      createDeletionFollower(ctx, { redisUrl: '', appsTransport: transport }).reconcile(new AbortController().signal),
    );
    const [select] = sent as [Statement];
    const ids = [deleted.applicationId, ...(select.values[0] as string[]).slice(1)];
    const plan = await planOf({ ...select, values: [ids, select.values[1]] }, mode);
    expect(plan.indexes).toEqual(['api_key_applications']);
    expect(plan.rowsRead).toBeLessThanOrEqual(LISTING);
  });
});

it('the index of applications has no list of pending entries to scan', async () => {
  const { rows } = await identity.db.query(`select reloptions from pg_class where oid = 'api_key_applications'::regclass`);
  expect(rows[0].reloptions).toEqual(['fastupdate=off']);
});

it('a use of a key changes no indexed column, so that it is written in place', async () => {
  const columns = `select distinct attname from pg_index join pg_attribute on attrelid = indrelid and attnum = any(indkey)`;
  const { rows } = await identity.db.query(`${columns} where indrelid = 'api_key'::regclass`);
  const indexed = rows.map(({ attname }) => attname);
  expect(indexed).toContain('public_id');
  for (const column of ['last_used_at', 'last_used_ip']) expect(indexed).not.toContain(column);
});
