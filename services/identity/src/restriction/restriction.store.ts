import type { DeletedApplication } from '@latchkey/deletions/follow-deletions';
import { sql } from 'kysely';
import type { Db } from '../db/schema.ts';

/**
 * Removes an application from the lists of up to `limit` keys of its account. Keys are locked in
 * one order, and their new list is made from the locked row, so that no concurrent change is lost.
 * @returns the changed keys
 */
export async function removeFromLists(
  db: Db,
  { applicationId, accountId }: DeletedApplication,
  limit: number,
  now: Date,
): Promise<Array<{ id: string; name: string }>> {
  return db
    .updateTable('api_key')
    .set({
      application_ids: sql<string[]>`array_remove(application_ids, ${applicationId}::uuid)`,
      // Clocks of processes differ, and the time of a change must not go back.
      updated_at: sql<Date>`greatest(updated_at, ${now}::timestamptz)`,
    })
    .where('id', 'in', (keys) =>
      keys
        .selectFrom('api_key')
        .select('id')
        .where('account_id', '=', accountId)
        .where(sql<boolean>`application_ids @> array[${applicationId}::uuid]`)
        .orderBy('id')
        .limit(limit)
        .forUpdate(),
    )
    .returning(['id', 'name'])
    .execute();
}

export async function selectListed(db: Db, applications: readonly DeletedApplication[]): Promise<DeletedApplication[]> {
  if (applications.length === 0) return [];
  const applicationIds = applications.map(({ applicationId }) => applicationId);
  const accountIds = applications.map(({ accountId }) => accountId);
  // `offset 0` makes the planner search by application, which few keys list, and not by account.
  const { rows } = await sql<DeletedApplication>`
    select deleted.application_id as "applicationId", deleted.account_id as "accountId"
    from unnest(${applicationIds}::uuid[], ${accountIds}::uuid[]) as deleted (application_id, account_id)
    where exists (
      select from (select account_id from api_key where application_ids @> array[deleted.application_id] offset 0) as naming
      where naming.account_id = deleted.account_id
    )`.execute(db);
  return rows;
}
