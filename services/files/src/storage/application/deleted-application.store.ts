import type { DeletedApplication } from '@latchkey/deletions/follow-deletions';
import { deleteExpired } from '@latchkey/kit/database/delete-expired';
import { sql } from 'kysely';
import type { Db } from '../../db/schema.ts';
import { afterMs } from '../object-deletion/object-deletion.store.ts';

export async function insertTombstone(tx: Db, applicationId: string): Promise<void> {
  await sql`insert into deleted_application (application_id) values (${applicationId}) on conflict do nothing`.execute(tx);
}

export async function isDeleted(db: Db, applicationId: string): Promise<boolean> {
  const { rows } = await sql`select from deleted_application where application_id = ${applicationId}`.execute(db);
  return rows.length > 0;
}

/** Ends a clean-up: deletes the usage, and marks the tombstone as complete. */
export async function completeCleanUp(db: Db, applicationId: string): Promise<void> {
  await sql`
    with removed as (delete from application_usage where application_id = ${applicationId})
    update deleted_application set completed_at = now() where application_id = ${applicationId} and completed_at is null`.execute(
    db,
  );
}

export async function selectUnmarked(db: Db, applications: readonly DeletedApplication[]): Promise<DeletedApplication[]> {
  const ids = applications.map(({ applicationId }) => applicationId);
  const { rows } = await sql<{ id: string }>`
    select id from unnest(${ids}::uuid[]) as id
    where not exists (select from deleted_application where application_id = id)`.execute(db);
  const unmarked = new Set(rows.map(({ id }) => id));
  return applications.filter(({ applicationId }) => unmarked.has(applicationId));
}

/**
 * Applications whose clean-up is incomplete, the oldest first. Without usage the account is unknown
 * and not needed: the transaction of the tombstone has abandoned its upload.
 */
export async function selectHalfDeleted(db: Db, limit: number): Promise<DeletedApplication[]> {
  const { rows } = await sql<DeletedApplication>`
    select application_id as "applicationId", coalesce(account_id, application_id) as "accountId"
    from (
      select application_id from deleted_application where completed_at is null order by created_at limit ${limit}
    ) as begun left join application_usage using (application_id)`.execute(db);
  return rows;
}

/** Deletes old tombstones of complete clean-ups. */
export function deleteTombstones(db: Db, ageMs: number, signal: AbortSignal): Promise<void> {
  const complete = { table: 'deleted_application', since: 'created_at', where: sql<boolean>`completed_at is not null` };
  return deleteExpired(db, complete, afterMs(-ageMs), signal);
}
