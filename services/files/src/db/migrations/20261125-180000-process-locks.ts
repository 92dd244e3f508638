import { type Kysely, sql } from 'kysely';

/** The lock of the process that receives the bytes. The release before leaves it null. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const table of ['upload_intent', 'resumable_upload', 'avatar'])
    await sql`alter table ${sql.table(table)} add column if not exists process_lock bigint`.execute(db);
}
