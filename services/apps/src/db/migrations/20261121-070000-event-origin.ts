import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table application_event add column if not exists call_origin jsonb`.execute(db);
}
