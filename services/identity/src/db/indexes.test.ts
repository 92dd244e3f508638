import { createHash } from 'node:crypto';
import { createDatabase, type Database } from '@latchkey/kit/database/database';
import { createLogger } from '@latchkey/kit/logger';
import { createTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { type Statement, statementsOf } from '@latchkey/testkit/statements';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { selectListed } from '../restriction/restriction.store.ts';
import { removeFromRestrictions } from '../restriction/restriction.ts';
import { migrateIdentity } from '../testing/identity.fixture.ts';
import type { IdentityDatabase } from './schema.ts';

/** Half of the keys are of one account, the others of 1,000; each names ten applications, and each application is named by ten keys. */
const KEYS = 50_000;
const SMALL_ACCOUNTS = 1_000;
const NAMING = 10;
/** A page of deletions, of which keys name the first alone. */
const DELETIONS = 500;

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

let database: TestDatabase;
let own: Database<IdentityDatabase>;
let client: pg.Client;
/** The statement of each thing that is done after a deletion, as it is sent where there is no key. */
const statements = new Map<string, Statement>();
beforeAll(async () => {
  database = await createTestDatabase({ schema: 'identity', migrate: migrateIdentity });
  const logger = createLogger('identity', 'silent');
  own = createDatabase({ url: database.url, schema: 'identity', logger });
  client = new pg.Client({ connectionString: database.url, options: '-c search_path=identity' });
  await client.connect();
  const ctx = { db: own.db, clock: () => new Date(), logger };
  for (const account of ['large', 'small-7']) {
    const deleted = { accountId: idOf(account), applicationId: idOf(`${account} 3`) };
    await keepStatement(`a job of the account ${account}`, () => removeFromRestrictions(ctx, deleted));
    const applications = Array.from({ length: DELETIONS }, (_, i) => {
      return i === 0 ? deleted : { accountId: idOf(account), applicationId: idOf(`unnamed ${i}`) };
    });
    await keepStatement(`a look of the account ${account}`, () => selectListed(ctx.db, applications));
  }
  await client.query(FILL_ACCOUNTS, [SMALL_ACCOUNTS]);
  await client.query(FILL_KEYS, [KEYS, SMALL_ACCOUNTS, NAMING]);
  await client.query('vacuum analyze api_key');
});
afterAll(async () => {
  await Promise.all([client.end(), own.close()]);
  await database.drop();
});

async function keepStatement(name: string, run: () => Promise<unknown>): Promise<void> {
  const sent = await statementsOf(run);
  const [statement, ...others] = sent.filter(({ text }) => !/^(begin|commit)$/.test(text));
  expect(others).toEqual([]);
  statements.set(name, statement as Statement);
}

interface Plan {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Actual Loops': number;
  readonly 'Actual Rows': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly Plans?: readonly Plan[];
}

const withChildren = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(withChildren)];

/** The nodes of the plan that a statement gets; nothing that it changes stays. */
async function planOf({ text, values }: Statement, mode: string): Promise<Plan[]> {
  try {
    await client.query('begin');
    await client.query(`set local plan_cache_mode = ${mode}`);
    await client.query(`prepare explained as ${text}`);
    const literals = values.map((value) => client.escapeLiteral(toLiteral(value))).join(', ');
    const { rows } = await client.query(`explain (analyze, format json) execute explained(${literals})`);
    return withChildren(rows[0]['QUERY PLAN'][0].Plan);
  } finally {
    await client.query('rollback');
    await client.query('deallocate all');
  }
}

function toLiteral(value: unknown): string {
  if (Array.isArray(value)) return `{${value.join(',')}}`;
  return value instanceof Date ? value.toISOString() : String(value);
}

/** Rows of the table that the plan looked at, whether it kept them or not. */
function rowsRead(plan: readonly Plan[]): number {
  const scans = plan.filter((node) => node['Relation Name'] === 'api_key' && /Scan/.test(node['Node Type']));
  return scans.reduce((sum, node) => {
    const { 'Actual Rows': kept, 'Rows Removed by Filter': filtered = 0, 'Rows Removed by Index Recheck': rechecked = 0 } = node;
    return sum + node['Actual Loops'] * (kept + filtered + rechecked);
  }, 0);
}

describe.each(['force_custom_plan', 'force_generic_plan'])(`with ${KEYS} keys and %s`, (mode) => {
  it.each(['large', 'small-7'])(
    'a job of the account %s finds the keys that name the application, and no others',
    async (account) => {
      const plan = await planOf(statements.get(`a job of the account ${account}`) as Statement, mode);
      expect(plan.some((node) => node['Index Name'] === 'api_key_applications')).toBe(true);
      expect(plan.filter((node) => node['Node Type'] === 'Seq Scan')).toEqual([]);
      // Each by its application, and then by its id.
      expect(rowsRead(plan)).toBe(2 * NAMING);
    },
  );

  it.each(['large', 'small-7'])(
    `a look with ${DELETIONS} applications of the account %s goes by the applications, not by the keys that the account has`,
    async (account) => {
      const plan = await planOf(statements.get(`a look of the account ${account}`) as Statement, mode);
      const indexes = plan.flatMap((node) => node['Index Name'] ?? []);
      expect(indexes).toEqual(['api_key_applications']);
      expect(plan.filter((node) => node['Node Type'] === 'Seq Scan')).toEqual([]);
      expect(rowsRead(plan)).toBeLessThanOrEqual(NAMING);
      expect(plan[0]?.['Actual Rows']).toBe(1);
    },
  );
});

describe('the index of restrictions', () => {
  it('has no list of pending entries, which every search would read from end to end', async () => {
    const { rows } = await client.query(`select reloptions from pg_class where oid = 'api_key_applications'::regclass`);
    expect(rows[0].reloptions).toEqual(['fastupdate=off']);
  });

  it('is not touched by the note of a use', async () => {
    // What the tests before called off is counted as well.
    await client.query('select pg_stat_force_next_flush()');
    const before = await updates();
    // The last one, whose page has room.
    await client.query(`update api_key set last_used_at = now(), last_used_ip = '::1' where public_id = 'filler-${KEYS - 1}'`);
    await client.query('select pg_stat_force_next_flush()');
    const after = await updates();
    expect([after.all - before.all, after.inPlace - before.inPlace]).toEqual([1, 1]);
  });

  async function updates(): Promise<{ all: number; inPlace: number }> {
    const { rows } = await client.query(
      `select n_tup_upd::int as "all", n_tup_hot_upd::int as "inPlace" from pg_stat_user_tables where relname = 'api_key'`,
    );
    return rows[0];
  }
});
