import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table trusted_issuer (
      id uuid primary key,
      account_id uuid not null constraint trusted_issuer_account references account on delete cascade,
      name text not null,
      issuer text not null,
      audience text not null,
      -- Each as JSON, ["name",value].
      claims text[] not null,
      -- SHA-256 of issuer, audience and the longest claim, by which a token finds the issuer.
      lookup_hash bytea not null,
      -- JSON Web Key Set; null where the issuer publishes its keys.
      jwks text,
      scopes text[] not null,
      all_applications boolean not null,
      application_ids uuid[] not null,
      lifetime_seconds integer not null,
      created_at timestamptz(3) not null
    )`.execute(db);
  await sql`create index trusted_issuer_of_account on trusted_issuer (account_id, created_at, id)`.execute(db);
  await sql`create index trusted_issuer_lookup on trusted_issuer (lookup_hash)`.execute(db);
  // What is accepted once: tokens of trusted issuers and flows of OpenID Connect.
  await sql`
    create table used_token (
      token_hash bytea primary key,
      expires_at timestamptz(3) not null
    )`.execute(db);
  await sql`create index used_token_end on used_token (expires_at)`.execute(db);
}
