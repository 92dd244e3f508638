import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table account add column password_failures timestamptz(3)[] not null default '{}'`.execute(db);
}
