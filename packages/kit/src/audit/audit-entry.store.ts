import { type QueryExecutorProvider, sql } from 'kysely';
import type pg from 'pg';
import type { ActorKind } from './actor.ts';

/** An entry as it is inserted. */
export interface NewEntryRow {
  readonly id: string;
  readonly account_id: string;
  readonly action: string;
  readonly actor: ActorKind;
  readonly credential_id: string | undefined;
  readonly address: string | undefined;
  readonly request_id: string | undefined;
  readonly subject: string;
  readonly subject_id: string;
  readonly application_id: string | undefined;
  /** JSON text. */
  readonly changes: string;
  /** Undefined for now, by the clock of the database. */
  readonly at: Date | undefined;
}

/** An entry as it is read. */
export interface EntryRow {
  readonly id: string;
  readonly at: Date;
  readonly action: string;
  readonly actor: ActorKind;
  readonly credential_id: string | null;
  readonly address: string | null;
  readonly request_id: string | null;
  readonly subject: string;
  readonly subject_id: string;
  readonly application_id: string | null;
  /** JSON text. */
  readonly changes: string;
}

/** Makes the table and its indexes, in whichever schema the connection works; to be called by a migration. Done again it does nothing. */
export async function createAuditTable(db: QueryExecutorProvider): Promise<void> {
  await sql`
    create table if not exists audit_entry (
      id uuid primary key,
      account_id uuid not null,
      -- When it is written, and not when its transaction began, which may have waited for another.
      at timestamptz(3) not null default clock_timestamp(),
      action text not null,
      actor text not null,
      credential_id uuid,
      address text,
      request_id text,
      subject text not null,
      subject_id uuid not null,
      application_id uuid,
      changes jsonb not null
    )`.execute(db);
  await sql`create index if not exists audit_entry_of_account on audit_entry (account_id, at, id)`.execute(db);
  await sql`
    create index if not exists audit_entry_of_application on audit_entry (account_id, application_id, at, id)
      where application_id is not null`.execute(db);
  await sql`create index if not exists audit_entry_of_action on audit_entry (account_id, action, at, id)`.execute(db);
  // An expression, or the planner might walk it for pages as well, through the entries of everybody.
  await sql`create index if not exists audit_entry_age on audit_entry ((at at time zone 'UTC'))`.execute(db);
}

const NOW = sql`clock_timestamp()`;

/** Adds entries, in one statement however many they are. Their columns are parameters each: to send all as one JSON text takes four times as long. */
export async function insertEntries(tx: QueryExecutorProvider, rows: readonly NewEntryRow[]): Promise<void> {
  const values = rows.map(
    (row) => sql`(${row.id}, ${row.account_id}, ${row.at ?? NOW}, ${row.action}, ${row.actor}, ${row.credential_id ?? null},
      ${row.address ?? null}, ${row.request_id ?? null}, ${row.subject}, ${row.subject_id}, ${row.application_id ?? null}, ${row.changes})`,
  );
  await sql`insert into audit_entry
      (id, account_id, at, action, actor, credential_id, address, request_id, subject, subject_id, application_id, changes)
    values ${sql.join(values)}`.execute(tx);
}

/** What is counted as one. */
export interface Alike {
  readonly accountId: string;
  readonly action: string;
  readonly reason: string | undefined;
}

/** Number of an account's entries of an action and a reason in the last hour, counted up to `limit`. */
export async function countLastHour(
  tx: QueryExecutorProvider,
  { accountId, action, reason }: Alike,
  limit: number,
): Promise<number> {
  // As a pair, the hour is no bound in the index of all actions, which the planner might read instead.
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from (
      select from audit_entry
        where account_id = ${accountId}::uuid and action = ${action}::text and (action, at) > (${action}::text, now() - interval '1 hour')
          and changes->>'reason' is not distinct from ${reason ?? null}::text
        limit ${limit}::int
    ) recent`.execute(tx);
  return rows[0]?.count ?? 0;
}

/** Lets one transaction at a time past it that writes entries of an action of which an account has so many at most. */
export async function lockAction(tx: QueryExecutorProvider, accountId: string, action: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`audit/${action}/${accountId}`}, 0))`.execute(tx);
}

/** Which entries to read: those of an account, and of an application or an action where that is said. */
export interface EntrySelection {
  readonly accountId: string;
  readonly filter: { readonly by: 'application_id' | 'action'; readonly value: string } | undefined;
}

/** Where a page begins: before this entry. */
export interface EntryPlace {
  readonly at: Date;
  readonly id: string;
}

const COLUMNS = `id, at, action, actor, credential_id, address, request_id, subject, subject_id, application_id, changes::text`;

/** A page in the order of an index that it is read backwards from; by another column where one is filtered by. */
const selectPage = (column?: 'application_id' | 'action') => ({
  name: `select-audit-entries${column ? `-of-${column}` : ''}`,
  text: `select ${COLUMNS} from audit_entry
    where account_id = $1${column ? ` and ${column} = $5` : ''} and (at, id) < ($2::timestamptz, $3::uuid)
    order by at desc, id desc limit $4`,
});

const PAGES = { all: selectPage(), application_id: selectPage('application_id'), action: selectPage('action') };

/** Comes after every entry. */
const NEWEST = ['infinity', 'ffffffff-ffff-ffff-ffff-ffffffffffff'] as const;

/** Entries of an account, newest first, up to `limit`. */
export async function selectEntries(
  pool: pg.Pool,
  { accountId, filter }: EntrySelection,
  { before, limit }: { readonly before: EntryPlace | undefined; readonly limit: number },
): Promise<EntryRow[]> {
  const [at, id] = before ? [before.at, before.id] : NEWEST;
  const values = [accountId, at, id, limit, ...(filter ? [filter.value] : [])];
  const { rows } = await pool.query<EntryRow>({ ...PAGES[filter?.by ?? 'all'], values });
  return rows;
}

const DELETE_OLD = {
  name: 'delete-old-audit-entries',
  text: `delete from audit_entry where id = any(array(
    select id from audit_entry where at at time zone 'UTC' < now() at time zone 'UTC' - make_interval(days => $1)
      order by at at time zone 'UTC' limit $2 for update skip locked
  ))`,
};

/** Removes entries that are older than so many days, up to `limit`, passing by those that another process removes; answers how many. */
export async function deleteOldEntries(pool: pg.Pool, days: number, limit: number): Promise<number> {
  const { rowCount } = await pool.query({ ...DELETE_OLD, values: [days, limit] });
  return rowCount ?? 0;
}
