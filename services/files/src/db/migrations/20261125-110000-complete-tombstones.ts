import { type Kysely, sql } from 'kysely';

/**
 * The sweeper finds incomplete clean-ups by an index: a join of all tombstones and all usages
 * exceeds the time of a statement at a million rows. The release before leaves the time null, so
 * that its clean-ups are repeated once.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table deleted_application add column if not exists completed_at timestamptz default now()`.execute(db);
  await sql`alter table deleted_application alter column completed_at drop default`.execute(db);
  await sql`
    update deleted_application set completed_at = null
    where exists (select from application_usage as usage where usage.application_id = deleted_application.application_id)`.execute(
    db,
  );
  await sql`
    create index if not exists deleted_application_incomplete on deleted_application (created_at)
      where completed_at is null`.execute(db);
}
