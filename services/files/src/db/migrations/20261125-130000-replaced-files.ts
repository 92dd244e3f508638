import { type Kysely, sql } from 'kysely';

/** The new content of a replaced file is another object; the file keeps its id. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table file add column if not exists object_id uuid`.execute(db);
  await sql`create unique index if not exists file_object on file (object_id) where object_id is not null`.execute(db);
  await sql`alter table upload_intent add column if not exists is_replacement boolean not null default false`.execute(db);
  await sql`alter table resumable_upload add column if not exists file_id uuid`.execute(db);
}
