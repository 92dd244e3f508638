import { type QueryExecutorProvider, sql } from 'kysely';
import type pg from 'pg';
import type { ActorKind, Origin } from './actor.ts';

/** Creates the table and its indexes, for a migration. Safe to repeat. */
export async function createAuditTable(db: QueryExecutorProvider): Promise<void> {
  await sql`
    create table if not exists audit_entry (
      id uuid primary key,
      account_id uuid not null,
      -- The time of writing: the transaction may have started long before.
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
  // On an expression, so that the planner does not use this index for pages.
  await sql`create index if not exists audit_entry_age on audit_entry ((at at time zone 'UTC'))`.execute(db);
}

export interface NewEntry {
  readonly id: string;
  readonly accountId: string;
  readonly action: string;
  readonly subject: { readonly kind: string; readonly id: string };
  readonly applicationId: string | undefined;
  /** JSON text. */
  readonly changes: string;
  /** By the database's clock; now unless set. */
  readonly at?: Date;
}

/**
 * Inserts entries in one statement, and returns the id of the transaction. A parameter per column
 * is four times as fast as JSON.
 */
export async function insertEntries(tx: QueryExecutorProvider, origin: Origin, entries: readonly NewEntry[]): Promise<string> {
  const { kind, credentialId = null, address = null, requestId = null } = origin;
  const values = entries.map(
    ({ id, accountId, at = sql`clock_timestamp()`, action, subject, applicationId = null, changes }) => sql`
      (${id}, ${accountId}, ${at}, ${action}, ${kind}, ${credentialId}, ${address}, ${requestId},
        ${subject.kind}, ${subject.id}, ${applicationId}, ${changes})`,
  );
  const inserted = await sql<{ xid: string }>`insert into audit_entry
      (id, account_id, at, action, actor, credential_id, address, request_id, subject, subject_id, application_id, changes)
    values ${sql.join(values)} returning pg_current_xact_id()::text as xid`.execute(tx);
  return (inserted.rows[0] as { xid: string }).xid;
}

/** Counts an account's entries of an action and a reason in the last hour, up to `limit`. */
export async function countLastHour(
  tx: QueryExecutorProvider,
  { accountId, action, reason, limit }: { accountId: string; action: string; reason: string | null; limit: number },
): Promise<number> {
  // The pair bounds the scan of the action's index, which the planner would not do by `at` alone.
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from (
      select from audit_entry
        where account_id = ${accountId}::uuid and action = ${action}::text and (action, at) > (${action}::text, now() - interval '1 hour')
          and changes->>'reason' is not distinct from ${reason}::text
        limit ${limit}::int
    ) recent`.execute(tx);
  return rows[0]?.count ?? 0;
}

/** Serialises transactions that count and write entries of an action in an account. */
export async function lockAction(tx: QueryExecutorProvider, accountId: string, action: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`audit/${action}/${accountId}`}, 0))`.execute(tx);
}

/** With the columns of the message `AuditEntry`. */
export interface ListedEntry {
  readonly id: string;
  readonly at: Date;
  readonly actor: ActorKind;
}

const COLUMNS = `id, at, action, actor, credential_id, address, request_id, subject as subject_kind, subject_id,
  application_id, changes::text as changes_json`;

const selectPage = (column?: 'application_id' | 'action') => ({
  name: `select-audit-entries${column ? `-of-${column}` : ''}`,
  text: `select ${COLUMNS} from audit_entry
    where account_id = $1${column ? ` and ${column} = $5` : ''} and (at, id) < ($2::timestamptz, $3::uuid)
    order by at desc, id desc limit $4`,
});

const PAGES = { all: selectPage(), applicationId: selectPage('application_id'), action: selectPage('action') };

const NEWEST = { at: 'infinity', id: 'ffffffff-ffff-ffff-ffff-ffffffffffff' };

/** Selects an account's entries, newest first, all or those of an application or an action. */
export async function selectEntries(
  pool: pg.Pool,
  page: {
    readonly accountId: string;
    readonly filter: 'applicationId' | 'action' | undefined;
    readonly value: string;
    readonly before: Omit<ListedEntry, 'actor'> | undefined;
    readonly limit: number;
  },
): Promise<ListedEntry[]> {
  const { at, id } = page.before ?? NEWEST;
  const values = [page.accountId, at, id, page.limit, ...(page.filter ? [page.value] : [])];
  const { rows } = await pool.query<ListedEntry>({ ...PAGES[page.filter ?? 'all'], values });
  return rows;
}
