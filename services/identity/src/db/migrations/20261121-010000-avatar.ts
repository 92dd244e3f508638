import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table account
      add column picture_url text,
      add column avatar_id uuid,
      add column avatar_uploaded_at timestamptz(3),
      add constraint account_avatar check ((avatar_id is null) = (avatar_uploaded_at is null))`.execute(db);
}
