import { sql } from 'kysely';
import { type Db, valuesOf } from '../db/schema.ts';

/** Primary key, which a second link of a subject violates. */
export const SUBJECT_INDEX = 'oidc_link_subject';

interface Subject {
  readonly issuer: string;
  readonly subject: string;
}

type LinkRow = Subject & { readonly account_id: string; readonly created_at: Date };

export async function selectLinkedAccount(db: Db, { issuer, subject }: Subject) {
  const { rows } = await sql<{ accountId: string; generation: number }>`
    select account.id as "accountId", sign_in_generation as generation
    from oidc_link join account on account.id = account_id
    where issuer = ${issuer} and subject = ${subject}`.execute(db);
  return rows[0];
}

export async function insertLink(db: Db, row: LinkRow): Promise<void> {
  await sql`insert into oidc_link ${valuesOf(row)}`.execute(db);
}

export async function insertLinkOnce(tx: Db, row: LinkRow): Promise<boolean> {
  const { numAffectedRows = 0n } = await sql`
    insert into oidc_link ${valuesOf(row)} on conflict on constraint ${sql.ref(SUBJECT_INDEX)} do nothing`.execute(tx);
  return numAffectedRows > 0n;
}

export async function selectLinksOf(db: Db, accountId: string): Promise<LinkRow[]> {
  const { rows } = await sql<LinkRow>`
    select * from oidc_link where account_id = ${accountId} order by created_at, issuer, subject`.execute(db);
  return rows;
}

export async function deleteLinks(tx: Db, links: readonly Subject[]): Promise<void> {
  for (const { issuer, subject } of links) {
    await sql`delete from oidc_link where issuer = ${issuer} and subject = ${subject}`.execute(tx);
  }
}

export async function deleteLinksOf(tx: Db, accountId: string): Promise<number> {
  const { numAffectedRows } = await sql`delete from oidc_link where account_id = ${accountId}`.execute(tx);
  return Number(numAffectedRows);
}

export async function updatePictureUrl(db: Db, accountId: string, pictureUrl: string | undefined): Promise<void> {
  if (pictureUrl === undefined) return;
  await sql`
    update account set picture_url = ${pictureUrl}
    where id = ${accountId} and picture_url is distinct from ${pictureUrl}`.execute(db);
}
