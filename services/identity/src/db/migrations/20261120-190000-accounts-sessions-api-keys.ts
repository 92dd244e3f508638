import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table account (
      id uuid primary key,
      username text not null,
      email text not null,
      -- argon2id in PHC format; null for an account that only signs in by OpenID Connect.
      password_hash text,
      created_at timestamptz(3) not null,
      -- Profile image that the OpenID Connect issuer named. The service never fetches it.
      picture_url text,
      avatar_id uuid,
      avatar_uploaded_at timestamptz(3),
      -- Epoch of sign-ins. It grows when sessions end, which cancels sign-ins under way.
      sign_in_generation integer not null default 0,
      -- Times of recent wrong passwords that came with a session.
      password_failures timestamptz(3)[] not null default '{}',
      -- True if id and time of the avatar are those of a removal.
      avatar_removed boolean not null default false,
      constraint account_avatar check ((avatar_id is null) = (avatar_uploaded_at is null))
    )`.execute(db);
  // Both are ASCII; collation "C" folds them alike whatever the locale of the server.
  await sql`create unique index account_username on account (lower(username collate "C"))`.execute(db);
  await sql`create unique index account_email on account (lower(email collate "C"))`.execute(db);
  await sql`
    create table session (
      id uuid primary key,
      account_id uuid not null constraint session_account references account on delete cascade,
      token_hash bytea not null constraint session_token unique,
      created_at timestamptz(3) not null,
      -- Written at most once a minute and address, with the last two columns.
      last_seen_at timestamptz(3) not null,
      expires_at timestamptz(3) not null,
      last_used_ip text,
      user_agent text
    )`.execute(db);
  await sql`create index session_of_account on session (account_id, last_seen_at, id)`.execute(db);
  await sql`create index session_last_seen on session (last_seen_at)`.execute(db);
  await sql`
    create table api_key (
      id uuid primary key,
      account_id uuid not null constraint api_key_account references account on delete cascade,
      name text not null,
      public_id text not null constraint api_key_public_id unique,
      -- HMAC-SHA-256 of the whole key text under the pepper.
      key_hash bytea not null,
      key_last4 text not null,
      scopes text[] not null constraint api_key_scopes check (cardinality(scopes) > 0),
      all_applications boolean not null,
      application_ids uuid[] not null,
      expires_at timestamptz(3),
      revoked_at timestamptz(3),
      last_used_at timestamptz(3),
      last_used_ip text,
      created_at timestamptz(3) not null,
      updated_at timestamptz(3) not null,
      -- Set for the key of a trusted issuer, with the two columns below.
      trusted_issuer_id uuid,
      issuer text,
      subject text,
      constraint api_key_applications check (not all_applications or cardinality(application_ids) = 0)
    )`.execute(db);
  await sql`create index api_key_of_account on api_key (account_id, created_at, id)`.execute(db);
  // Finds the keys that name a deleted application. Without a list of pending entries, which every
  // query would scan; keys change seldom, and recording a use does not touch the index.
  await sql`create index api_key_applications on api_key using gin (application_ids) with (fastupdate = off)`.execute(db);
  await sql`
    create index api_key_exchanged_end on api_key (expires_at) where trusted_issuer_id is not null`.execute(db);
  await sql`
    create table daily_requests (
      api_key_id uuid not null references api_key on delete cascade,
      day date not null,
      requests bigint not null,
      primary key (api_key_id, day)
    )`.execute(db);
  await sql`create index daily_requests_day on daily_requests (day)`.execute(db);
}
