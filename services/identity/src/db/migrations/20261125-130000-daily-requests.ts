import { type Kysely, sql } from 'kysely';

/** Requests of management keys, a row for each day (UTC) with any. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table daily_requests (
      api_key_id uuid not null references api_key on delete cascade,
      day date not null,
      requests bigint not null,
      primary key (api_key_id, day)
    )`.execute(db);
  await sql`create index daily_requests_day on daily_requests (day)`.execute(db);
}
