import { createIdempotencyTable } from '@latchkey/audit/idempotency.store';
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await createIdempotencyTable(db);
  await sql`
    alter table upload_intent
      add column if not exists idempotency_id bytea,
      add column if not exists idempotency_fingerprint bytea`.execute(db);
}
