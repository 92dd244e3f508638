import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table oidc_link (
      issuer text not null,
      subject text not null,
      account_id uuid not null constraint oidc_link_account references account on delete cascade,
      created_at timestamptz(3) not null,
      constraint oidc_link_subject primary key (issuer, subject)
    )`.execute(db);
  await sql`create index oidc_link_of_account on oidc_link (account_id)`.execute(db);
}
