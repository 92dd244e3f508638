import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // A deleted account, for the removal of what other services store of it.
  await sql`
    create table deleted_account (
      account_id uuid primary key,
      deleted_at timestamptz(3) not null,
      -- Time when its applications were deleted, late enough that no request creates another.
      completed_at timestamptz(3)
    )`.execute(db);
  await sql`create index deleted_account_time on deleted_account (deleted_at, account_id)`.execute(db);
  // Deletions stay for 30 days, and few of them are incomplete.
  await sql`
    create index deleted_account_incomplete on deleted_account (deleted_at, account_id)
      where completed_at is null`.execute(db);
}
