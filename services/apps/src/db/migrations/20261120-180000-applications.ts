import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table application (
      id uuid primary key,
      account_id uuid not null,
      name text not null,
      status text not null default 'online' check (status in ('online', 'paused')),
      version text not null default '1.0',
      license_requires_client_id boolean not null default false,
      user_requires_client_id boolean not null default false,
      user_requires_license boolean not null default false,
      license_levels text[] not null default '{}',
      socket_key_hash bytea not null constraint application_socket_key unique,
      socket_key_sealed bytea not null,
      http_key_hash bytea not null constraint application_http_key unique,
      http_key_sealed bytea not null,
      runtime_keys_updated_at timestamptz(3) not null,
      -- Times of the successful rotations of the last hour, in the order they were made.
      recent_rotations timestamptz(3)[] not null default '{}',
      -- The sequence of the newest event for live clients.
      last_sequence bigint not null default 0,
      created_at timestamptz(3) not null,
      -- Time of the last change; null before the first.
      updated_at timestamptz(3),
      -- True if update feeds need no key.
      public_updates boolean not null default false,
      -- Minisign public keys that the signatures of published releases verify with.
      signing_keys text[] not null default '{}'
    )`.execute(db);
  await sql`create index application_of_account on application (account_id, created_at, id)`.execute(db);
  await sql`
    create table application_event (
      id uuid primary key,
      application_id uuid not null,
      account_id uuid not null,
      sequence bigint,
      type text not null,
      data jsonb not null,
      created_at timestamptz(3) not null,
      -- Time when its jobs were in all queues that need it; null before.
      delivered_at timestamptz(3),
      call_origin jsonb,
      constraint application_event_sequence unique (application_id, sequence)
    )`.execute(db);
  await sql`create index application_event_undelivered on application_event (id) where delivered_at is null`.execute(db);
  await sql`
    create index application_event_deletions on application_event (created_at, application_id) where type = 'deleted'`.execute(
    db,
  );
  await sql`
    create table event_log (
      -- Changes when the log may have lost events that clients received.
      epoch text not null default left(replace(gen_random_uuid()::text, '-', ''), 16),
      only_row boolean primary key default true check (only_row)
    )`.execute(db);
  await sql`insert into event_log default values`.execute(db);
  await sql`
    create table previous_runtime_key (
      application_id uuid not null references application on delete cascade,
      type text not null check (type in ('socketKey', 'httpKey')),
      hash bytea not null constraint previous_runtime_key_hash unique,
      expires_at timestamptz(3) not null,
      -- Written once a minute at most; null before the first use.
      last_used_at timestamptz(3),
      primary key (application_id, type)
    )`.execute(db);
  await sql`
    create table daily_usage (
      application_id uuid not null references application on delete cascade,
      day date not null,
      events bigint not null,
      downloads bigint not null,
      uploads bigint not null,
      clients_max bigint not null,
      primary key (application_id, day)
    )`.execute(db);
  await sql`create index daily_usage_day on daily_usage (day)`.execute(db);
  await createApplicationCount(db);
}

/**
 * The number of applications of each account, kept by triggers. Counting 5,000 applications took
 * 4 ms of each creation, under the account's lock.
 */
async function createApplicationCount(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table application_count (
      account_id uuid primary key,
      count bigint not null
    )`.execute(db);
  await sql`
    create function keep_application_count() returns trigger language plpgsql set search_path from current as $$
      begin
        insert into application_count as kept (account_id, count)
          select account_id, count(*) * tg_argv[0]::int from changed group by account_id order by account_id
          on conflict (account_id) do update set count = kept.count + excluded.count;
        return null;
      end
    $$`.execute(db);
  await sql`
    create trigger keep_count_of_inserted after insert on application
      referencing new table as changed for each statement execute function keep_application_count('1')`.execute(db);
  await sql`
    create trigger keep_count_of_deleted after delete on application
      referencing old table as changed for each statement execute function keep_application_count('-1')`.execute(db);
}
