import type { Insertable, Selectable } from 'kysely';
import type { Db, OidcLinkTable } from '../db/schema.ts';

/** Primary key, which a second link of a subject violates. */
export const SUBJECT_INDEX = 'oidc_link_subject';

type Subject = Pick<Selectable<OidcLinkTable>, 'issuer' | 'subject'>;

export async function selectLinkedAccount(db: Db, { issuer, subject }: Subject) {
  return db
    .selectFrom('oidc_link')
    .innerJoin('account', 'account.id', 'oidc_link.account_id')
    .select(['account.id as accountId', 'account.sign_in_generation as generation'])
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .executeTakeFirst();
}

export async function insertLink(db: Db, row: Insertable<OidcLinkTable>): Promise<void> {
  await db.insertInto('oidc_link').values(row).execute();
}

export async function insertLinkOnce(tx: Db, row: Insertable<OidcLinkTable>): Promise<boolean> {
  const inserted = tx.insertInto('oidc_link').values(row);
  const { numInsertedOrUpdatedRows = 0n } = await inserted
    .onConflict((conflict) => conflict.constraint(SUBJECT_INDEX).doNothing())
    .executeTakeFirstOrThrow();
  return numInsertedOrUpdatedRows > 0n;
}

export async function selectLinksOf(db: Db, accountId: string) {
  const links = db.selectFrom('oidc_link').selectAll().where('account_id', '=', accountId);
  return links.orderBy('created_at').orderBy('issuer').orderBy('subject').execute();
}

export async function deleteLinks(tx: Db, links: readonly Subject[]): Promise<void> {
  for (const { issuer, subject } of links) {
    await tx.deleteFrom('oidc_link').where('issuer', '=', issuer).where('subject', '=', subject).execute();
  }
}

export async function deleteLinksOf(tx: Db, accountId: string): Promise<number> {
  const { numDeletedRows } = await tx.deleteFrom('oidc_link').where('account_id', '=', accountId).executeTakeFirst();
  return Number(numDeletedRows);
}

export async function updatePictureUrl(db: Db, accountId: string, pictureUrl: string | undefined): Promise<void> {
  if (pictureUrl === undefined) return;
  const account = db.updateTable('account').set({ picture_url: pictureUrl }).where('id', '=', accountId);
  await account.where('picture_url', 'is distinct from', pictureUrl).execute();
}
