import { type RawBuilder, sql } from 'kysely';
import { apiKeyEpoch, sessionEpoch } from '../authentication/principal-epoch.ts';
import type { Db } from '../db/schema.ts';

export interface DeletedAccountRow {
  readonly account_id: string;
  readonly deleted_at: Date;
}

/**
 * Deletes an account with all that identity stores of it but its audit log, and announces that to
 * the other services.
 * @returns the epochs of its credentials, to be ended after the commit
 */
export async function deleteAccountRow(tx: Db, accountId: string, now: Date): Promise<string[]> {
  const sessions = await sql<{ token_hash: Buffer }>`
    delete from session where account_id = ${accountId} returning token_hash`.execute(tx);
  const keys = await sql<{ public_id: string }>`
    delete from api_key where account_id = ${accountId} returning public_id`.execute(tx);
  await sql`delete from account where id = ${accountId}`.execute(tx);
  await sql`insert into deleted_account (account_id, deleted_at) values (${accountId}, ${now})`.execute(tx);
  return [...sessions.rows.map((row) => sessionEpoch(row.token_hash)), ...keys.rows.map((row) => apiKeyEpoch(row.public_id))];
}

async function selectWhere(db: Db, condition: RawBuilder<unknown>, limit: number): Promise<DeletedAccountRow[]> {
  const { rows } = await sql<DeletedAccountRow>`
    select account_id, deleted_at from deleted_account where ${condition}
    order by deleted_at, account_id limit ${limit}`.execute(db);
  return rows;
}

/** Deleted accounts that may still have applications, the oldest first, after a given one. */
export async function selectIncomplete(db: Db, after: DeletedAccountRow | undefined, limit: number) {
  const isLater = after ? sql`and (deleted_at, account_id) > (${after.deleted_at}, ${after.account_id})` : sql``;
  return selectWhere(db, sql`completed_at is null ${isLater}`, limit);
}

export async function completeDeletion(db: Db, accountId: string, now: Date): Promise<void> {
  await sql`update deleted_account set completed_at = ${now} where account_id = ${accountId}`.execute(db);
}

/** Deletions from a time on; of those at exactly that time, the ones after an account. */
export async function selectDeletedSince(db: Db, since: Date, after: string | undefined, limit: number) {
  const isLater = after === undefined ? sql`deleted_at >= ${since}` : sql`(deleted_at, account_id) > (${since}, ${after})`;
  return selectWhere(db, isLater, limit);
}
