import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table two_factor (
      account_id uuid primary key constraint two_factor_account references account on delete cascade,
      secret_sealed bytea not null,
      enabled_at timestamptz(3),
      -- TOTP time step (RFC 6238) of the last accepted code.
      last_step integer,
      recent_failures timestamptz(3)[] not null default '{}',
      created_at timestamptz(3) not null
    )`.execute(db);
  await sql`
    create table recovery_code (
      account_id uuid not null constraint recovery_code_two_factor references two_factor on delete cascade,
      code_hash bytea not null,
      used_at timestamptz(3),
      primary key (account_id, code_hash)
    )`.execute(db);
}
