import { createAuditTable } from '@latchkey/audit/audit.store';
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await createAuditTable(db);
  // Whoever began an upload is not there any more when it ends.
  await sql`alter table upload_intent add column if not exists actor text`.execute(db);
  await sql`alter table avatar add column if not exists actor text, add column if not exists request_id text`.execute(db);
}
