import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table resumable_upload (
      id uuid primary key,
      account_id uuid not null,
      application_id uuid not null,
      display_name text collate "C" not null,
      byte_size bigint not null check (byte_size > 0),
      charged_mib bigint not null,
      expected_checksum bytea,
      metadata text not null,
      state text not null default 'open' check (state in ('open', 'stored', 'ended')),
      byte_offset bigint not null default 0 check (byte_offset between 0 and byte_size),
      store_state jsonb not null default '{}',
      claim_id uuid,
      lease_until timestamptz,
      checksum bytea,
      created_at timestamptz not null default now(),
      expires_at timestamptz not null
    )`.execute(db);
  await sql`create index resumable_upload_of_account on resumable_upload (account_id) where state = 'open'`.execute(db);
  await sql`create index resumable_upload_of_application on resumable_upload (application_id)`.execute(db);
  await sql`create index resumable_upload_expiry on resumable_upload (expires_at)`.execute(db);
  await sql`
    create unique index resumable_upload_name on resumable_upload (application_id, display_name) where state = 'open'`.execute(
    db,
  );
}
