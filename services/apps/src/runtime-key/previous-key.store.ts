import { sql } from 'kysely';
import type { Db } from '../db/schema.ts';
import type { RuntimeKeyType } from './runtime-key-text.ts';

/** Stores the current key as the previous one. To be called before the current one is replaced. */
export async function storePreviousKey(tx: Db, applicationId: string, type: RuntimeKeyType, expiresAt: Date) {
  const column = sql.ref(type === 'socketKey' ? 'socket_key_hash' : 'http_key_hash');
  await sql`
    insert into previous_runtime_key (application_id, type, hash, expires_at)
    select id, ${type}, ${column}, ${expiresAt} from application where id = ${applicationId}`.execute(tx);
}

/** Removes the previous key; true if its overlap had not ended. The application must be locked. */
export async function removePreviousKey(tx: Db, applicationId: string, type: RuntimeKeyType, now: Date): Promise<boolean> {
  const { rows } = await sql<{ expires_at: Date }>`
    delete from previous_runtime_key where application_id = ${applicationId} and type = ${type} returning expires_at`.execute(tx);
  return rows.some(({ expires_at }) => expires_at > now);
}

/** Stores a use, unless one later than `since` is stored, or another process is storing one. */
export async function markUsed(db: Db, hash: Buffer, now: Date, since: Date): Promise<void> {
  await sql`
    update previous_runtime_key set last_used_at = ${now} where hash in (
      select hash from previous_runtime_key
      where hash = ${hash} and (last_used_at is null or last_used_at <= ${since}) for update skip locked)`.execute(db);
}
