import { type RawBuilder, sql } from 'kysely';
import { type Db, valuesOf } from '../db/schema.ts';

export interface SessionRow {
  readonly id: string;
  readonly account_id: string;
  readonly token_hash: Buffer;
  readonly created_at: Date;
  readonly last_seen_at: Date;
  readonly last_used_ip: string | null;
  readonly user_agent: string | null;
  readonly expires_at: Date;
}

/** Names a session by its id and its account, or by its token. */
export type SessionRef = Pick<SessionRow, 'id' | 'account_id'> | Pick<SessionRow, 'token_hash'>;

const isNamed = (session: SessionRef) =>
  'id' in session ? sql`id = ${session.id} and account_id = ${session.account_id}` : sql`token_hash = ${session.token_hash}`;

export async function insertSession(tx: Db, row: SessionRow): Promise<void> {
  await sql`insert into session ${valuesOf(row)}`.execute(tx);
}

export async function selectOpenSessions(
  db: Db,
  { accountId, currentId, now, idleSince }: { accountId: string; currentId: string | undefined; now: Date; idleSince: Date },
  limit: number,
) {
  const select = async (which: RawBuilder<unknown>) => {
    const { rows } = await sql<Pick<SessionRow, 'id'>>`
      select id, created_at, last_seen_at as last_used_at, last_used_ip, user_agent from session
      where account_id = ${accountId} and expires_at > ${now} and last_seen_at > ${idleSince} ${which}`.execute(db);
    return rows;
  };
  const current = currentId === undefined ? [] : await select(sql`and id = ${currentId}`);
  // In the order of the index: a script may have opened 100,000.
  const latest = await select(sql`order by last_seen_at desc, id desc limit ${limit}`);
  return [...current, ...latest.filter(({ id }) => id !== currentId)].slice(0, limit);
}

export async function lockSession(tx: Db, session: SessionRef): Promise<SessionRow | undefined> {
  return (await sql<SessionRow>`select * from session where ${isNamed(session)} for share`.execute(tx)).rows[0];
}

export async function deleteSession(tx: Db, session: SessionRef) {
  const { rows } = await sql<Pick<SessionRow, 'id' | 'account_id' | 'token_hash'>>`
    delete from session where ${isNamed(session)} returning id, account_id, token_hash`.execute(tx);
  return rows[0];
}

/**
 * Deletes the sessions of an account, except one, and cancels its sign-ins under way.
 * @returns the hashes of the sessions' tokens
 */
export async function deleteSessionsOf(tx: Db, accountId: string, keptId?: string): Promise<Buffer[]> {
  await sql`update account set sign_in_generation = sign_in_generation + 1 where id = ${accountId}`.execute(tx);
  const { rows } = await sql<Pick<SessionRow, 'token_hash'>>`
    delete from session where account_id = ${accountId} ${keptId === undefined ? sql`` : sql`and id <> ${keptId}`}
    returning token_hash`.execute(tx);
  return rows.map((row) => row.token_hash);
}
