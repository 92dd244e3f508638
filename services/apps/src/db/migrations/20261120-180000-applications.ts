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
      recent_rotations timestamptz(3)[] not null default '{}',
      last_sequence bigint not null default 0,
      created_at timestamptz(3) not null
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
      constraint application_event_sequence unique (application_id, sequence)
    )`.execute(db);
}
