import { createSharedRead } from '@latchkey/kit/database/shared-read';
import { type Selectable, sql } from 'kysely';
import type pg from 'pg';
import type { Db, PreviousRuntimeKeyTable } from '../db/schema.ts';
import type { RuntimeKeyType } from './vault.ts';

export type PreviousKeyRow = Pick<Selectable<PreviousRuntimeKeyTable>, 'application_id' | 'type' | 'expires_at' | 'last_used_at'>;

/** Reads a rotated key, also an expired one. */
export const createPreviousKeyRead = (pool: pg.Pool): ((hash: Buffer) => Promise<PreviousKeyRow | undefined>) =>
  createSharedRead(pool, {
    name: 'select-previous-key',
    key: { hash: 'bytea' },
    select: 'select application_id, type, expires_at, last_used_at from previous_runtime_key where hash = asked.hash',
  });

/** True if the overlap of a key has not ended. The application's row must be locked. */
export async function hasOverlap(tx: Db, applicationId: string, type: RuntimeKeyType, now: Date) {
  const found = await tx
    .selectFrom('previous_runtime_key')
    .select('hash')
    .where('application_id', '=', applicationId)
    .where('type', '=', type)
    .where('expires_at', '>', now)
    .executeTakeFirst();
  return found !== undefined;
}

/** Stores the current key as the previous one. To be called before the current one is replaced. */
export async function storePreviousKey(tx: Db, applicationId: string, type: RuntimeKeyType, expiresAt: Date) {
  const column = sql.ref(type === 'socketKey' ? 'socket_key_hash' : 'http_key_hash');
  await sql`
    insert into previous_runtime_key (application_id, type, hash, expires_at)
    select id, ${type}, ${column}, ${expiresAt} from application where id = ${applicationId}
    on conflict (application_id, type) do update
      set hash = excluded.hash, expires_at = excluded.expires_at, last_used_at = null`.execute(tx);
}

export async function removePreviousKey(tx: Db, applicationId: string, type: RuntimeKeyType): Promise<void> {
  await tx.deleteFrom('previous_runtime_key').where('application_id', '=', applicationId).where('type', '=', type).execute();
}

/** Stores a use, unless one later than `since` is stored, or another process is storing one. */
export async function markUsed(db: Db, hash: Buffer, now: Date, since: Date): Promise<void> {
  await sql`
    update previous_runtime_key set last_used_at = ${now} where hash in (
      select hash from previous_runtime_key
      where hash = ${hash} and (last_used_at is null or last_used_at <= ${since}) for update skip locked)`.execute(db);
}
