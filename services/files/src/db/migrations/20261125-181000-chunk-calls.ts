import { type Kysely, sql } from 'kysely';

/** The call with an idempotency key whose chunk has claimed an upload. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table resumable_upload add column if not exists claim_call bytea`.execute(db);
}
