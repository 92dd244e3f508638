import { createHash } from 'node:crypto';
import type { Insertable, Kysely, Selectable } from 'kysely';
import type { IdentityDatabase, OidcLinkTable } from '../db/schema.ts';

/** Most used flows removed in one go. Each adds one and removes up to so many, so that they can't pile up. */
const SWEEP_LIMIT = 100;

/** Who somebody is at an issuer. */
export interface SubjectOfIssuer {
  readonly issuer: string;
  readonly subject: string;
}

/** The primary key, which a second link of a subject runs into. */
export const SUBJECT_INDEX = 'oidc_link_subject';

/** The account that a subject is linked to, and the generation of sign-ins that it is in. */
export async function selectLinkedAccount(
  db: Kysely<IdentityDatabase>,
  { issuer, subject }: SubjectOfIssuer,
): Promise<{ accountId: string; generation: number } | undefined> {
  return db
    .selectFrom('oidc_link')
    .innerJoin('account', 'account.id', 'oidc_link.account_id')
    .select(['account.id as accountId', 'account.sign_in_generation as generation'])
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .executeTakeFirst();
}

/** The account that a subject is linked to. */
export async function selectLinkedAccountId(
  db: Kysely<IdentityDatabase>,
  { issuer, subject }: SubjectOfIssuer,
): Promise<string | undefined> {
  const row = await db
    .selectFrom('oidc_link')
    .select('account_id')
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .executeTakeFirst();
  return row?.account_id;
}

export async function insertLink(db: Kysely<IdentityDatabase>, row: Insertable<OidcLinkTable>): Promise<void> {
  await db.insertInto('oidc_link').values(row).execute();
}

/** Links a subject unless it is linked; the account that it is linked to from then on, and whether it is by this. */
export async function insertLinkOnce(
  tx: Kysely<IdentityDatabase>,
  row: Insertable<OidcLinkTable>,
): Promise<{ readonly accountId: string | undefined; readonly isNew: boolean }> {
  const { numInsertedOrUpdatedRows } = await tx
    .insertInto('oidc_link')
    .values(row)
    .onConflict((conflict) => conflict.constraint(SUBJECT_INDEX).doNothing())
    .executeTakeFirstOrThrow();
  return { accountId: await selectLinkedAccountId(tx, row), isNew: (numInsertedOrUpdatedRows ?? 0n) > 0n };
}

/** The links of an account, the oldest first. */
export async function selectLinksOf(db: Kysely<IdentityDatabase>, accountId: string): Promise<Selectable<OidcLinkTable>[]> {
  const links = db.selectFrom('oidc_link').selectAll().where('account_id', '=', accountId);
  return links.orderBy('created_at').orderBy('issuer').orderBy('subject').execute();
}

export async function deleteLinks(tx: Kysely<IdentityDatabase>, links: readonly SubjectOfIssuer[]): Promise<void> {
  for (const { issuer, subject } of links) {
    await tx.deleteFrom('oidc_link').where('issuer', '=', issuer).where('subject', '=', subject).execute();
  }
}

/** Removes every link of an account; answers how many there were. */
export async function deleteLinksOf(tx: Kysely<IdentityDatabase>, accountId: string): Promise<number> {
  const { numDeletedRows } = await tx.deleteFrom('oidc_link').where('account_id', '=', accountId).executeTakeFirst();
  return Number(numDeletedRows);
}

export async function updatePictureUrl(db: Kysely<IdentityDatabase>, accountId: string, pictureUrl: string): Promise<void> {
  await db
    .updateTable('account')
    .set({ picture_url: pictureUrl })
    .where('id', '=', accountId)
    .where('picture_url', 'is distinct from', pictureUrl)
    .execute();
}

/** Uses up a flow, by its state or another id that nobody can guess; whether it was unused. */
export async function insertUsedFlow(db: Kysely<IdentityDatabase>, state: string, expiresAt: Date): Promise<boolean> {
  const row = await db
    .insertInto('oidc_used_flow')
    .values({ state_hash: createHash('sha256').update(state).digest(), expires_at: expiresAt })
    .onConflict((conflict) => conflict.column('state_hash').doNothing())
    .returning('state_hash')
    .executeTakeFirst();
  return row !== undefined;
}

/** Forgets used flows that are over anyhow, passing by those that somebody else forgets. */
export async function deleteUsedFlows(db: Kysely<IdentityDatabase>, until: Date): Promise<void> {
  const over = db
    .selectFrom('oidc_used_flow')
    .select('state_hash')
    .where('expires_at', '<=', until)
    .limit(SWEEP_LIMIT)
    .forUpdate()
    .skipLocked();
  await db.deleteFrom('oidc_used_flow').where('state_hash', 'in', over).execute();
}
