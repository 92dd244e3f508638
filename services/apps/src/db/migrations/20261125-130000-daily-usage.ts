import { type Kysely, sql } from 'kysely';

/** Usage of applications, a row for each day (UTC) with any. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table daily_usage (
      application_id uuid not null references application on delete cascade,
      day date not null,
      events bigint not null,
      downloads bigint not null,
      uploads bigint not null,
      clients_max bigint not null,
      primary key (application_id, day)
    )`.execute(db);
  await sql`create index daily_usage_day on daily_usage (day)`.execute(db);
}
