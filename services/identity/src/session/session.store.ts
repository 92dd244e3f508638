import type { Insertable, Selectable } from 'kysely';
import { endSignInsUnderWay } from '../account/account.store.ts';
import type { Db, SessionTable } from '../db/schema.ts';

export type SessionRow = Selectable<SessionTable>;
/** Names a session by its id and its account, or by its token. */
export type SessionRef = Pick<SessionRow, 'id' | 'account_id'> | Pick<SessionRow, 'token_hash'>;

export async function insertSession(db: Db, row: Insertable<SessionTable>): Promise<void> {
  await db.insertInto('session').values(row).execute();
}

export async function deleteSession(tx: Db, session: SessionRef): Promise<SessionRow | undefined> {
  const named = tx.deleteFrom('session').where(({ and }) => and(session));
  return named.returningAll().executeTakeFirst();
}

/** The session, locked against deletion. */
export async function lockSession(tx: Db, session: SessionRef): Promise<SessionRow | undefined> {
  const named = tx.selectFrom('session').where(({ and }) => and(session));
  return named.selectAll().forShare().executeTakeFirst();
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
