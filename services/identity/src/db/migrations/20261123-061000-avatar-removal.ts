import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table account add column if not exists avatar_removed boolean not null default false`.execute(db);
}
