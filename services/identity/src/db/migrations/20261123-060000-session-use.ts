import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table session
      add column if not exists last_used_ip text,
      add column if not exists user_agent text`.execute(db);
}
