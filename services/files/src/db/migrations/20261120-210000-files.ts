import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // The object of a file is `<application_id>/<object_id>`, and exists as long as the row.
  await sql`
    create table file (
      id uuid primary key,
      -- The upload that replaced the content; null while it is the first, whose id is the file's.
      object_id uuid,
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
  await sql`create unique index file_object on file (object_id) where object_id is not null`.execute(db);
  // Searches and pages read only the index, except for rows that changed after the last vacuum.
  await sql`
    alter table file set (
      autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 1000,
      autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000
    )`.execute(db);
  // A table apart, as changed rows of `file` cost its index-only scans.
  await sql`
    create table file_download_url (
      file_id uuid primary key references file on delete cascade,
      created_count bigint not null,
      last_created_at timestamptz(3) not null
    )`.execute(db);
  // Digests of a file of a release, which its upload did not make. Minisign signs BLAKE2b-512.
  await sql`
    create table file_digest (
      file_id uuid primary key references file on delete cascade,
      sha512 bytea not null,
      blake2b512 bytea not null
    )`.execute(db);
  await sql`
    create table application_usage (
      application_id uuid primary key,
      account_id uuid not null,
      file_count bigint not null check (file_count >= 0),
      charged_mib bigint not null check (charged_mib >= 0)
    )`.execute(db);
  await sql`create index application_usage_of_account on application_usage (account_id)`.execute(db);
  // An upload between its announcement and its end. It is the account's lease, of which there is
  // one. Its process renews `lease_until`; once that has passed, the upload is abandoned: the
  // removal of its object replaces the row.
  await sql`
    create table upload_intent (
      id uuid primary key,
      account_id uuid not null constraint upload_lease unique,
      application_id uuid not null,
      display_name text not null,
      byte_size bigint,
      expected_checksum bytea,
      -- Most bytes that the allowance left when it began.
      byte_size_max bigint not null,
      -- True if it may replace the file that has its name by then.
      is_replacement boolean not null default false,
      ticket_hash bytea not null constraint upload_ticket unique,
      actor text,
      idempotency_id bytea,
      idempotency_fingerprint bytea,
      state text not null default 'issued' check (state in ('issued', 'receiving')),
      process_lock bigint,
      deadline_at timestamptz not null,
      lease_until timestamptz not null,
      created_at timestamptz not null default now()
    )`.execute(db);
  await sql`create index upload_intent_expiry on upload_intent (lease_until)`.execute(db);
  // While it is `open` and not expired, a resumable upload reserves its name and its charge. The
  // process that receives a chunk has claimed it, and renews `lease_until`. Its objects are
  // `<application_id>/<id>`, and beside it those of `claim_id` and of `store_state.tail`.
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
      -- 'stored' has its file; 'ended' failed, expired or was ended. Both are remembered for a day.
      state text not null default 'open' check (state in ('open', 'stored', 'ended')),
      -- Durable bytes, and where the store has them.
      byte_offset bigint not null default 0 check (byte_offset between 0 and byte_size),
      store_state jsonb not null default '{}',
      claim_id uuid,
      claim_call bytea,
      process_lock bigint,
      lease_until timestamptz,
      checksum bytea,
      -- The file that it replaces; null where the file has the id of the upload.
      file_id uuid,
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
  // Objects to remove, whose rows are deleted.
  await sql`
    create table object_deletion (
      object_key text primary key,
      due_at timestamptz not null default now()
    )`.execute(db);
  await sql`create index object_deletion_due on object_deletion (due_at)`.execute(db);
  // Tombstones of applications, which take no commits, while their events may come again.
  await sql`
    create table deleted_application (
      application_id uuid primary key,
      created_at timestamptz not null default now(),
      -- Time when its files and its usage were gone.
      completed_at timestamptz
    )`.execute(db);
  await sql`create index deleted_application_age on deleted_application (created_at)`.execute(db);
  await sql`
    create index deleted_application_incomplete on deleted_application (created_at) where completed_at is null`.execute(db);
}
