import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // Existing events count as delivered. A default marks them without rewriting the table.
  await sql`alter table application_event add column if not exists delivered_at timestamptz(3) default now()`.execute(db);
  await sql`alter table application_event alter column delivered_at drop default`.execute(db);
  await sql`
    create index if not exists application_event_undelivered on application_event (id) where delivered_at is null`.execute(db);
  await sql`
    create index if not exists application_event_deletions on application_event (created_at, application_id)
      where type = 'deleted'`.execute(db);
}
