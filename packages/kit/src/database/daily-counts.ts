import { type Kysely, sql } from 'kysely';
import { parseId } from '../validation/id.ts';

const DAY_MS = 24 * 3_600_000;

/** A table of counts by owner and day (UTC). Days without any have no row. */
export interface DailyCounts<Column extends string> {
  readonly table: string;
  /** Table of the owners, which names their account. */
  readonly owner: string;
  /** Column of the owner's id. */
  readonly key: string;
  /** Columns that add up in a day. */
  readonly sums: readonly Column[];
  /** Columns of which a day has the largest. */
  readonly peaks: readonly Column[];
}

/** The day (UTC) that lies this many days before a time, `YYYY-MM-DD`. */
export const dayBefore = (time: Date, days = 0) => new Date(time.getTime() - days * DAY_MS).toISOString().slice(0, 10);

/**
 * Adds counts to those of a day. Texts other than the id of an owner are ignored. The rows are
 * locked in one order, so that concurrent calls do not deadlock. A row is written only if it
 * changes.
 */
export async function addDailyCounts<DB, Column extends string>(
  db: Kysely<DB>,
  { table, owner, key, sums, peaks }: DailyCounts<Column>,
  at: Date,
  given: ReadonlyArray<{ readonly id: string } & Readonly<Record<Column, number>>>,
): Promise<void> {
  const counts = given.filter(({ id }) => parseId(id));
  if (counts.length === 0) return;
  const columns = [...sums, ...peaks];
  const namesOf = (relation: string) => sql.join(columns.map((name) => sql.ref(`${relation}.${name}`)));
  const write = (sum: (name: Column) => unknown, peak: (name: Column) => unknown) => [...sums.map(sum), ...peaks.map(peak)];
  const totals = write(
    (name) => sql`sum(${sql.ref(name)}) as ${sql.ref(name)}`,
    (name) => sql`max(${sql.ref(name)}) as ${sql.ref(name)}`,
  );
  const updates = write(
    (name) => sql`${sql.ref(name)} = stored.${sql.ref(name)} + excluded.${sql.ref(name)}`,
    (name) => sql`${sql.ref(name)} = greatest(stored.${sql.ref(name)}, excluded.${sql.ref(name)})`,
  );
  const changes = write(
    (name) => sql`excluded.${sql.ref(name)} > 0`,
    (name) => sql`excluded.${sql.ref(name)} > stored.${sql.ref(name)}`,
  );
  await sql`
    with counted as (
      select id, ${sql.join(totals)}
      from unnest(${counts.map(({ id }) => id)}::uuid[],
        ${sql.join(columns.map((name) => sql`${counts.map((row) => row[name])}::bigint[]`))}) as given (id, ${sql.join(columns.map(sql.ref))})
      group by id
    )
    insert into ${sql.table(table)} as stored (${sql.ref(key)}, day, ${sql.join(columns.map(sql.ref))})
    select counted.id, ${dayBefore(at)}::date, ${namesOf('counted')}
    from counted join ${sql.table(owner)} owner using (id)
    order by counted.id for key share of owner
    on conflict (${sql.ref(key)}, day) do update set ${sql.join(updates)} where ${sql.join(changes, sql` or `)}`.execute(db);
}

/**
 * The counts of the days up to a time, oldest first; none if the account has no such owner.
 *
 * @param ref ids, which may be any text
 */
export async function selectDailyCounts<DB, Column extends string>(
  db: Kysely<DB>,
  { table, owner, key, sums, peaks }: DailyCounts<Column>,
  ref: { readonly accountId: string; readonly id: string },
  at: Date,
  days: number,
) {
  const [accountId, id] = [parseId(ref.accountId), parseId(ref.id)];
  if (!accountId || !id) return [];
  const counts = [...sums, ...peaks].map((name) => sql`coalesce(${sql.ref(name)}, 0) as ${sql.ref(name)}`);
  const { rows } = await sql<{ readonly date: string } & Readonly<Record<Column, string>>>`
    select to_char(shown.day, 'YYYY-MM-DD') as date, ${sql.join(counts)}
    from ${sql.table(owner)} owner cross join (
      select ${dayBefore(at)}::date - i as day from generate_series(0, ${days}::int - 1) i
    ) shown
    left join ${sql.table(table)} counts on ${sql.ref(`counts.${key}`)} = owner.id and counts.day = shown.day
    where owner.id = ${id} and account_id = ${accountId} order by shown.day`.execute(db);
  return rows;
}
