import { type Kysely, sql } from 'kysely';

/** Indexes the avatars of an account in every state, to count those that were begun recently. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`drop index avatar_of_account`.execute(db);
  await sql`create index avatar_of_account on avatar (account_id, created_at desc, id desc)`.execute(db);
}
