import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table account add column sign_in_generation integer not null default 0`.execute(db);
}
