import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table file (
      id uuid primary key,
      account_id uuid not null,
      application_id uuid not null,
      display_name text collate "C" not null,
      folded_name text collate "C" not null generated always as (lower(display_name)) stored,
      byte_size bigint not null check (byte_size > 0),
      checksum bytea not null check (octet_length(checksum) = 32),
      content_type text not null,
      created_at timestamptz(3) not null,
      constraint file_name unique (application_id, display_name)
    )`.execute(db);
  await sql`create index file_newest_first on file (application_id, created_at desc, id desc) include (folded_name)`.execute(db);
  // Searches and pages read only the index, except for rows that changed after the last vacuum.
  await sql`
    alter table file set (
      autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 1000,
      autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000
    )`.execute(db);
  await sql`
    create table file_download_url (
      file_id uuid primary key references file on delete cascade,
      created_count bigint not null,
      last_created_at timestamptz(3) not null
    )`.execute(db);
  await sql`
    create table application_usage (
      application_id uuid primary key,
      account_id uuid not null,
      file_count bigint not null check (file_count >= 0),
      charged_mib bigint not null check (charged_mib >= 0)
    )`.execute(db);
  await sql`create index application_usage_of_account on application_usage (account_id)`.execute(db);
  await sql`
    create table upload_intent (
      id uuid primary key,
      account_id uuid not null,
      application_id uuid not null,
      display_name text not null,
      byte_size bigint,
      expected_checksum bytea,
      byte_size_max bigint not null,
      ticket_hash bytea not null constraint upload_ticket unique,
      state text not null default 'issued' check (state in ('issued', 'receiving', 'abandoned')),
      deadline_at timestamptz not null,
      lease_until timestamptz not null,
      created_at timestamptz not null default now()
    )`.execute(db);
  await sql`create unique index upload_lease on upload_intent (account_id) where state <> 'abandoned'`.execute(db);
  await sql`create index upload_intent_expiry on upload_intent (lease_until)`.execute(db);
  await sql`
    create table object_deletion (
      object_key text primary key,
      due_at timestamptz not null default now()
    )`.execute(db);
  await sql`create index object_deletion_due on object_deletion (due_at)`.execute(db);
  await sql`
    create table deleted_application (
      application_id uuid primary key,
      created_at timestamptz not null default now()
    )`.execute(db);
  await sql`create index deleted_application_age on deleted_application (created_at)`.execute(db);
}
