import { createAuditTable } from '@latchkey/audit/audit.store';
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await createAuditTable(db);
  // An upload ends without the request that began it.
  await sql`alter table upload_intent add column if not exists actor text`.execute(db);
  await sql`alter table avatar add column if not exists actor text, add column if not exists request_id text`.execute(db);
}
