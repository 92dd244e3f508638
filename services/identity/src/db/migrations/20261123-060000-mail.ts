import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table mail (
      id uuid primary key,
      kind text not null,
      -- Null for a password reset until its mail is sent, and if no account has the address.
      account_id uuid constraint mail_account references account on delete cascade,
      recipient text not null,
      -- SHA-256 of the link's token.
      token_hash bytea not null constraint mail_token unique,
      created_at timestamptz(3) not null,
      expires_at timestamptz(3) not null,
      -- Time when the mail was sent, or found to have no recipient.
      done_at timestamptz(3)
    )`.execute(db);
  await sql`create index mail_of_account on mail (account_id, created_at)`.execute(db);
  await sql`create index mail_of_recipient on mail (lower(recipient collate "C"), created_at)`.execute(db);
  await sql`create index mail_created on mail (created_at)`.execute(db);
}
