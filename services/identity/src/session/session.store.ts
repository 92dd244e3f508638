import type { Insertable, Kysely } from 'kysely';
import { endSignInsUnderWay } from '../account/account.store.ts';
import type { IdentityDatabase, SessionTable } from '../db/schema.ts';

export async function insertSession(db: Kysely<IdentityDatabase>, row: Insertable<SessionTable>): Promise<void> {
  await db.insertInto('session').values(row).execute();
}

/** Removes one session; answers the hash of its token, or undefined where the account has no such session. */
export async function deleteSession(db: Kysely<IdentityDatabase>, accountId: string, id: string): Promise<Buffer | undefined> {
  const row = await db
    .deleteFrom('session')
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .returning('token_hash')
    .executeTakeFirst();
  return row?.token_hash;
}

/** Removes the session of a token, and answers whose it was; undefined where there was none. */
export async function deleteSessionOfToken(
  db: Kysely<IdentityDatabase>,
  tokenHash: Buffer,
): Promise<{ readonly id: string; readonly accountId: string } | undefined> {
  const session = db.deleteFrom('session').where('token_hash', '=', tokenHash);
  return session.returning(['id', 'account_id as accountId']).executeTakeFirst();
}

/** When a session of an account was opened; undefined where there is no such session. */
export async function selectSessionOpening(
  db: Kysely<IdentityDatabase>,
  accountId: string,
  id: string,
): Promise<Date | undefined> {
  const session = db.selectFrom('session').select('created_at').where('id', '=', id).where('account_id', '=', accountId);
  return (await session.executeTakeFirst())?.created_at;
}

/** Whether the account has the session, which then stays until the transaction ends. */
export async function holdSession(tx: Kysely<IdentityDatabase>, accountId: string, id: string): Promise<boolean> {
  const session = tx.selectFrom('session').select('id').where('id', '=', id).where('account_id', '=', accountId);
  return (await session.forShare().executeTakeFirst()) !== undefined;
}

/**
 * Removes the sessions of an account, all but one where one is to be kept, and makes sign-ins under way come to nothing; answers the hashes of the
 * sessions' tokens.
 */
export async function deleteSessionsOf(
  tx: Kysely<IdentityDatabase>,
  accountId: string,
  keptId: string | undefined,
): Promise<Buffer[]> {
  await endSignInsUnderWay(tx, accountId);
  const all = tx.deleteFrom('session').where('account_id', '=', accountId).returning('token_hash');
  const rows = await (keptId === undefined ? all : all.where('id', '<>', keptId)).execute();
  return rows.map((row) => row.token_hash);
}

/** Removes sessions last seen at that time or before, up to `limit`, passing by those that another sweep removes. */
export async function deleteIdleSessions(db: Kysely<IdentityDatabase>, idleSince: Date, limit: number): Promise<void> {
  const idle = db
    .selectFrom('session')
    .select('id')
    .where('last_seen_at', '<=', idleSince)
    .orderBy('last_seen_at')
    .limit(limit)
    .forUpdate()
    .skipLocked();
  await db.deleteFrom('session').where('id', 'in', idle).execute();
}
