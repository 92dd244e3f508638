import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table file_digest (
      file_id uuid primary key references file on delete cascade,
      sha512 bytea not null,
      blake2b512 bytea not null
    )`.execute(db);
}
