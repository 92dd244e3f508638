import type { DeletedApplication } from '@latchkey/deletions/follow-deletions';
import { sql } from 'kysely';
import type { Db } from '../db/schema.ts';

/** A key of 1,000 applications has as many index entries, and a statement has 2 s. */
const BATCH_MAX = 50;

export async function selectListed(db: Db, applications: readonly DeletedApplication[]): Promise<DeletedApplication[]> {
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

/**
 * Removes an application from a batch of keys. They are locked in one order, and their new list is
 * made from the locked row, so that no concurrent change is lost. Clocks of processes differ, and
 * the time of a change must not go back.
 */
export async function removeFromLists(db: Db, { applicationId, accountId }: DeletedApplication, now: Date) {
  const { rows } = await sql<{ id: string; name: string }>`update api_key
    set application_ids = array_remove(application_ids, ${applicationId}::uuid),
      updated_at = greatest(updated_at, ${now}::timestamptz)
    where id = any(array(
      select id from api_key where account_id = ${accountId} and application_ids @> array[${applicationId}::uuid]
      order by id limit ${BATCH_MAX} for update
    ))
    returning id, name`.execute(db);
  return rows;
}
