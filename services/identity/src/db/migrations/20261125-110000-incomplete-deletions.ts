import { type Kysely, sql } from 'kysely';

/** Deletions stay for 30 days, and few of them are incomplete. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create index if not exists deleted_account_incomplete on deleted_account (deleted_at, account_id)
      where completed_at is null`.execute(db);
}
