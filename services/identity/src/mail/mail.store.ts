import { type Insertable, type Selectable, sql } from 'kysely';
import type { Db, MailTable } from '../db/schema.ts';

export type MailRow = Selectable<MailTable>;
export type LinkHolder = { readonly accountId: string } | { readonly recipient: string };

const folded = (text: string) => sql`lower(${text} collate "C")`;
const foldedRecipient = sql`lower(recipient collate "C")`;

export async function insertMail(db: Db, row: Insertable<MailTable>): Promise<void> {
  await db.insertInto('mail').values(row).execute();
}

/** Makes transactions that send mails to one address run one after the other. */
export async function lockRecipient(tx: Db, recipient: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended('mail/' || ${folded(recipient)}, 0))`.execute(tx);
}

/** Creation time of the `count`-th latest mail with a link, if that was after `since`. */
export async function selectLatestLink(db: Db, holder: LinkHolder, count: number, since: Date): Promise<Date | undefined> {
  const all = db.selectFrom('mail').select('created_at').where('created_at', '>', since).where('kind', '<>', 'email_notice');
  const own =
    'accountId' in holder
      ? all.where('account_id', '=', holder.accountId)
      : all.where(foldedRecipient, '=', folded(holder.recipient));
  const found = own.orderBy('created_at', 'desc').offset(count - 1);
  return (await found.limit(1).executeTakeFirst())?.created_at;
}

const pending = (db: Db, now: Date) => db.selectFrom('mail').where('done_at', 'is', null).where('expires_at', '>', now);

export async function selectPendingMail(db: Db, id: string, now: Date): Promise<MailRow | undefined> {
  return pending(db, now).selectAll().where('id', '=', id).executeTakeFirst();
}

/** The latest first: the oldest may wait for another try already. */
export async function selectPendingIds(db: Db, now: Date, limit: number): Promise<string[]> {
  const latest = pending(db, now).select('id').orderBy('created_at', 'desc').limit(limit);
  return (await latest.execute()).map(({ id }) => id);
}

/** Gives a password reset to the account that has its address. */
export async function assignMail(tx: Db, id: string, accountId: string): Promise<void> {
  await tx.updateTable('mail').set({ account_id: accountId }).where('id', '=', id).execute();
}

export async function finishMail(db: Db, id: string, now: Date): Promise<void> {
  await db.updateTable('mail').set({ done_at: now }).where('id', '=', id).execute();
}

/** A link of some account that is neither expired nor void. */
export async function selectLink(db: Db, kind: MailRow['kind'], tokenHash: Buffer, now: Date) {
  const link = db.selectFrom('mail').select(['account_id as accountId', 'recipient']).where('token_hash', '=', tokenHash);
  const valid = link.where('kind', '=', kind).where('expires_at', '>', now).where('account_id', 'is not', null);
  return valid.$narrowType<{ accountId: string }>().executeTakeFirst();
}

/** Makes the links of an account invalid, sent or not, by any clock. Notices are still sent. */
export async function expireLinks(tx: Db, accountId: string): Promise<void> {
  const links = tx.updateTable('mail').set(({ ref }) => ({ expires_at: ref('created_at') }));
  await links.where('account_id', '=', accountId).where('kind', '<>', 'email_notice').execute();
}
