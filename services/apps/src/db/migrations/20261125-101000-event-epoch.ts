import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table event_log (
      epoch text not null default left(replace(gen_random_uuid()::text, '-', ''), 16),
      only_row boolean primary key default true check (only_row)
    )`.execute(db);
  await sql`insert into event_log default values`.execute(db);
}
