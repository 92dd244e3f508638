import type { Insertable } from 'kysely';
import { endSignInsUnderWay } from '../account/account.store.ts';
import type { Db, SessionTable } from '../db/schema.ts';

export async function insertSession(db: Db, row: Insertable<SessionTable>): Promise<void> {
  await db.insertInto('session').values(row).execute();
}

/** @returns the hash of its token; undefined where the account has no such session */
export async function deleteSession(db: Db, accountId: string, id: string): Promise<Buffer | undefined> {
  const session = db.deleteFrom('session').where('id', '=', id).where('account_id', '=', accountId);
  return (await session.returning('token_hash').executeTakeFirst())?.token_hash;
}

export async function deleteSessionByToken(db: Db, tokenHash: Buffer): Promise<{ id: string; accountId: string } | undefined> {
  const session = db.deleteFrom('session').where('token_hash', '=', tokenHash);
  return session.returning(['id', 'account_id as accountId']).executeTakeFirst();
}

export async function selectSessionCreatedAt(db: Db, accountId: string, id: string): Promise<Date | undefined> {
  const session = db.selectFrom('session').select('created_at').where('id', '=', id).where('account_id', '=', accountId);
  return (await session.executeTakeFirst())?.created_at;
}

export async function lockSession(tx: Db, accountId: string, id: string): Promise<boolean> {
  const session = tx.selectFrom('session').select('id').where('id', '=', id).where('account_id', '=', accountId);
  return (await session.forShare().executeTakeFirst()) !== undefined;
}

/**
 * Deletes the sessions of an account, except one, and cancels its sign-ins under way.
 * @returns the hashes of the sessions' tokens
 */
export async function deleteSessionsOf(tx: Db, accountId: string, keptId?: string): Promise<Buffer[]> {
  await endSignInsUnderWay(tx, accountId);
  const all = tx.deleteFrom('session').where('account_id', '=', accountId).returning('token_hash');
  const rows = await (keptId === undefined ? all : all.where('id', '<>', keptId)).execute();
  return rows.map((row) => row.token_hash);
}

export async function deleteIdleSessions(db: Db, idleSince: Date, limit: number): Promise<number> {
  const idle = db.selectFrom('session').select('id').where('last_seen_at', '<=', idleSince).orderBy('last_seen_at');
  const locked = idle.limit(limit).forUpdate().skipLocked();
  const { numDeletedRows } = await db.deleteFrom('session').where('id', 'in', locked).executeTakeFirst();
  return Number(numDeletedRows);
}
