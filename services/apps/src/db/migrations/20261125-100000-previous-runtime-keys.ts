import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table previous_runtime_key (
      application_id uuid not null references application on delete cascade,
      type text not null check (type in ('socketKey', 'httpKey')),
      hash bytea not null constraint previous_runtime_key_hash unique,
      expires_at timestamptz(3) not null,
      last_used_at timestamptz(3),
      primary key (application_id, type)
    )`.execute(db);
}
