import { type Kysely, sql } from 'kysely';

/** The call with an idempotency key that began an avatar's upload; one with the same key waits. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table avatar
      add column if not exists idempotency_id bytea,
      add column if not exists idempotency_fingerprint bytea,
      add column if not exists idempotency_result bytea`.execute(db);
  await sql`
    create unique index if not exists avatar_call on avatar (idempotency_id)
    where state = 'waiting' and idempotency_id is not null`.execute(db);
}
