import type { Insertable, Selectable } from 'kysely';
import type { Db, SessionTable } from '../db/schema.ts';

export type SessionRow = Selectable<SessionTable>;
/** Names a session by its id and its account, or by its token. */
export type SessionRef = Pick<SessionRow, 'id' | 'account_id'> | Pick<SessionRow, 'token_hash'>;

export async function insertSession(tx: Db, row: Insertable<SessionTable>): Promise<void> {
  await tx.insertInto('session').values(row).execute();
}

export async function selectOpenSessions(
  db: Db,
  { accountId, currentId, now, idleSince }: { accountId: string; currentId: string | undefined; now: Date; idleSince: Date },
  limit: number,
) {
  const open = db
    .selectFrom('session')
    .select(['id', 'created_at', 'last_seen_at as last_used_at', 'last_used_ip', 'user_agent'])
    .where('account_id', '=', accountId)
    .where('expires_at', '>', now)
    .where('last_seen_at', '>', idleSince);
  const current = currentId === undefined ? [] : await open.where('id', '=', currentId).execute();
  // In the order of the index: a script may have opened 100,000.
  const latest = await open.orderBy('last_seen_at', 'desc').orderBy('id', 'desc').limit(limit).execute();
  return [...current, ...latest.filter(({ id }) => id !== currentId)].slice(0, limit);
}

export async function lockSession(tx: Db, session: SessionRef): Promise<SessionRow | undefined> {
  const named = tx.selectFrom('session').where(({ and }) => and(session));
  return named.selectAll().forShare().executeTakeFirst();
}

export async function deleteSession(tx: Db, session: SessionRef) {
  const named = tx.deleteFrom('session').where(({ and }) => and(session));
  return named.returning(['id', 'account_id', 'token_hash']).executeTakeFirst();
}

/**
 * Deletes the sessions of an account, except one, and cancels its sign-ins under way.
 * @returns the hashes of the sessions' tokens
 */
export async function deleteSessionsOf(tx: Db, accountId: string, keptId?: string): Promise<Buffer[]> {
  const account = tx.updateTable('account').where('id', '=', accountId);
  await account.set((row) => ({ sign_in_generation: row('sign_in_generation', '+', 1) })).execute();
  const all = tx.deleteFrom('session').where('account_id', '=', accountId).returning('token_hash');
  const rows = await (keptId === undefined ? all : all.where('id', '<>', keptId)).execute();
  return rows.map((row) => row.token_hash);
}
