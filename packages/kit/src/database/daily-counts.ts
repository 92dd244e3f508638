import { type Kysely, sql } from 'kysely';
import { parseId } from '../validation/id.ts';

const DAY_MS = 24 * 3_600_000;

/** A table of counts by owner and day (UTC). Days without any have no row. */
export interface DailyCounts<Column extends string> {
  readonly table: string;
  /** Table of the owners, which names their account. Their id is in the column `<owner>_id`. */
  readonly owner: string;
  /** Columns that add up in a day, and those of which a day has the largest. */
  readonly columns: Readonly<Record<Column, 'sum' | 'max'>>;
}

/** The day (UTC) that lies this many days before a time, `YYYY-MM-DD`. */
export const dayBefore = (time: Date, days = 0) => new Date(time.getTime() - days * DAY_MS).toISOString().slice(0, 10);

/** SQL for each column, from its name and how it adds up. */
const forEach = ({ columns }: DailyCounts<string>, toSql: (name: string, total: 'sum' | 'max') => string) =>
  sql.raw(
    Object.entries(columns)
      .map(([name, total]) => toSql(name, total))
      .join(', '),
  );

/**
 * Adds counts to those of a day. Texts other than the id of an owner are ignored. The rows are
 * locked in one order, so that concurrent calls do not deadlock.
 */
export async function addDailyCounts<DB, Column extends string>(
  db: Kysely<DB>,
  counts: DailyCounts<Column>,
  at: Date,
  given: ReadonlyArray<{ readonly id: string } & Readonly<Record<Column, number>>>,
): Promise<void> {
  const rows = given.filter(({ id }) => parseId(id));
  if (rows.length === 0) return;
  const names = Object.keys(counts.columns) as Column[];
  const lists = names.map((name) => sql`${rows.map((row) => row[name])}::bigint[]`);
  const [table, owner, key] = [sql.table(counts.table), sql.table(counts.owner), sql.ref(`${counts.owner}_id`)];
  await sql`
    with counted as (
      select id, ${forEach(counts, (name, total) => `${total}(${name}) as ${name}`)}
      from unnest(${rows.map(({ id }) => id)}::uuid[], ${sql.join(lists)}) as given (id, ${forEach(counts, (name) => name)})
      group by id
    )
    insert into ${table} as stored (${key}, day, ${forEach(counts, (name) => name)})
    select id, ${dayBefore(at)}::date, ${forEach(counts, (name) => `counted.${name}`)}
    from counted join ${owner} owner using (id)
    order by id for key share of owner
    on conflict (${key}, day) do update set ${forEach(counts, (name, total) =>
      total === 'sum' ? `${name} = stored.${name} + excluded.${name}` : `${name} = greatest(stored.${name}, excluded.${name})`,
    )}`.execute(db);
}

/**
 * The counts of the days up to a time, oldest first; none if the account has no such owner.
 *
 * @param ref ids, which may be any text
 */
export async function selectDailyCounts<DB, Column extends string>(
  db: Kysely<DB>,
  counts: DailyCounts<Column>,
  ref: { readonly accountId: string; readonly id: string },
  at: Date,
  days: number,
) {
  const [accountId, id] = [parseId(ref.accountId), parseId(ref.id)];
  if (!accountId || !id) return [];
  const { rows } = await sql<{ readonly date: string } & Readonly<Record<Column, string>>>`
    select to_char(shown.day, 'YYYY-MM-DD') as date, ${forEach(counts, (name) => `coalesce(${name}, 0) as ${name}`)}
    from ${sql.table(counts.owner)} owner
    cross join (select ${dayBefore(at)}::date - i as day from generate_series(0, ${days}::int - 1) i) shown
    left join ${sql.table(counts.table)} stored on stored.${sql.ref(`${counts.owner}_id`)} = owner.id and stored.day = shown.day
    where owner.id = ${id} and account_id = ${accountId} order by shown.day`.execute(db);
  return rows;
}
