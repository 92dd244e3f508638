import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table application add column if not exists updated_at timestamptz(3)`.execute(db);
}
