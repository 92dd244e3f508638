import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // Finds the keys that name a deleted application. Without a list of pending entries, which every
  // query would scan; keys change seldom, and recording a use does not touch the index.
  await sql`create index api_key_applications on api_key using gin (application_ids) with (fastupdate = off)`.execute(db);
}
