import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table avatar (
      id uuid primary key,
      account_id uuid not null,
      state text not null default 'waiting'
        check (state in ('waiting', 'stored', 'recorded', 'removing', 'replaced', 'refused', 'abandoned')),
      raw_id uuid not null,
      image_id uuid constraint avatar_image unique,
      byte_size integer,
      checksum bytea,
      refusal text,
      actor text,
      request_id text,
      idempotency_id bytea,
      idempotency_fingerprint bytea,
      idempotency_result bytea,
      process_lock bigint,
      created_at timestamptz(3) not null default now(),
      due_at timestamptz not null,
      check ((state in ('stored', 'recorded')) <= (image_id is not null and byte_size > 0 and octet_length(checksum) = 32))
    )`.execute(db);
  await sql`create index avatar_of_account on avatar (account_id, created_at desc, id desc)`.execute(db);
  await sql`create index avatar_due on avatar (due_at) where state <> 'recorded'`.execute(db);
  await sql`
    create unique index avatar_call on avatar (idempotency_id)
    where state = 'waiting' and idempotency_id is not null`.execute(db);
}
