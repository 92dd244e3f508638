import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // For a deletion, which asks which keys name an application. Without a list of pending entries, as every look would read that from end to end; and
  // keys change seldom: the note of a use does not touch the index.
  await sql`create index api_key_applications on api_key using gin (application_ids) with (fastupdate = off)`.execute(db);
}
