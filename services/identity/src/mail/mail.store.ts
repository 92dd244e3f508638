import { sql } from 'kysely';
import { type Db, valuesOf } from '../db/schema.ts';

export interface MailRow {
  readonly id: string;
  /** A link to reset the password, one to confirm a new email, or a notice of a new email. */
  readonly kind: 'password_reset' | 'email_change' | 'email_notice';
  readonly account_id: string | null;
  readonly recipient: string;
}

type NewMail = MailRow & { readonly token_hash: Buffer; readonly created_at: Date; readonly expires_at: Date };

export type LinkHolder = { readonly accountId: string } | { readonly recipient: string };

export async function insertMail(db: Db, row: NewMail): Promise<void> {
  await sql`insert into mail ${valuesOf(row)}`.execute(db);
}

/** Makes transactions that send mails to one address run one after the other. */
export async function lockRecipient(tx: Db, recipient: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended('mail/' || lower(${recipient} collate "C"), 0))`.execute(tx);
}

/** Creation time of the `count`-th latest mail with a link, if that was after `since`. */
export async function selectLatestLink(db: Db, holder: LinkHolder, count: number, since: Date): Promise<Date | undefined> {
  const isHeld =
    'accountId' in holder
      ? sql`account_id = ${holder.accountId}`
      : sql`lower(recipient collate "C") = lower(${holder.recipient} collate "C")`;
  const { rows } = await sql<{ created_at: Date }>`
    select created_at from mail where created_at > ${since} and kind <> 'email_notice' and ${isHeld}
    order by created_at desc limit 1 offset ${count - 1}`.execute(db);
  return rows[0]?.created_at;
}

const isPending = (now: Date) => sql`done_at is null and expires_at > ${now}`;

export async function selectPendingMail(db: Db, id: string, now: Date): Promise<MailRow | undefined> {
  return (await sql<MailRow>`select * from mail where id = ${id} and ${isPending(now)}`.execute(db)).rows[0];
}

/** The latest first: the oldest may wait for another try already. */
export async function selectPendingIds(db: Db, now: Date, limit: number): Promise<string[]> {
  const { rows } = await sql<Pick<MailRow, 'id'>>`
    select id from mail where ${isPending(now)} order by created_at desc limit ${limit}`.execute(db);
  return rows.map(({ id }) => id);
}

/** Gives a password reset to the account that has its address. */
export async function assignMail(tx: Db, id: string, accountId: string): Promise<void> {
  await sql`update mail set account_id = ${accountId} where id = ${id}`.execute(tx);
}

export async function finishMail(db: Db, id: string, now: Date): Promise<void> {
  await sql`update mail set done_at = ${now} where id = ${id}`.execute(db);
}

/** A link of some account that is neither expired nor void. */
export async function selectLink(db: Db, kind: MailRow['kind'], tokenHash: Buffer, now: Date) {
  const { rows } = await sql<{ accountId: string; recipient: string }>`
    select account_id as "accountId", recipient from mail
    where token_hash = ${tokenHash} and kind = ${kind} and expires_at > ${now} and account_id is not null`.execute(db);
  return rows[0];
}

/** Makes the links of an account invalid, sent or not, by any clock. Notices are still sent. */
export async function expireLinks(tx: Db, accountId: string): Promise<void> {
  await sql`update mail set expires_at = created_at where account_id = ${accountId} and kind <> 'email_notice'`.execute(tx);
}
