import { type Kysely, sql } from 'kysely';
import type { IdentityDatabase } from '../db/schema.ts';

/** Names an application that is gone, and the account that had it. */
export interface DeletedApplication {
  readonly applicationId: string;
  readonly accountId: string;
}

/** How much to change at once, and what then counts as the time of the change. */
export interface RemovalBatch {
  readonly limit: number;
  readonly at: Date;
}

/** A key whose list is shorter. */
export interface ShortenedKey {
  readonly id: string;
  readonly name: string;
}

/**
 * Removes an application from the lists of keys of its account, and answers which keys it changed. Both the choice of a key and its new list
 * are made from the row as it is once it is locked, so that a change made meanwhile is neither lost nor overlooked. Keys are locked in one order
 * whoever removes from them at the same time.
 */
export async function removeFromLists(
  db: Kysely<IdentityDatabase>,
  { applicationId, accountId }: DeletedApplication,
  { limit, at }: RemovalBatch,
): Promise<ShortenedKey[]> {
  return db
    .updateTable('api_key')
    .set({
      application_ids: sql<string[]>`array_remove(application_ids, ${applicationId}::uuid)`,
      // Clocks of processes differ, and a record that changes does not grow older.
      updated_at: sql<Date>`greatest(updated_at, ${at}::timestamptz)`,
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

/** Which of some deleted applications a key of their account still names. */
export async function selectListed(
  db: Kysely<IdentityDatabase>,
  applications: readonly DeletedApplication[],
): Promise<DeletedApplication[]> {
  if (applications.length === 0) return [];
  const applicationIds = applications.map(({ applicationId }) => applicationId);
  const accountIds = applications.map(({ accountId }) => accountId);
  // The offset keeps the account out of the search: it is an account's keys that may be many, and not those that name one application.
  const { rows } = await sql<DeletedApplication>`
    select deleted.application_id as "applicationId", deleted.account_id as "accountId"
    from unnest(${applicationIds}::uuid[], ${accountIds}::uuid[]) as deleted (application_id, account_id)
    where exists (
      select from (select account_id from api_key where application_ids @> array[deleted.application_id] offset 0) as naming
      where naming.account_id = deleted.account_id
    )`.execute(db);
  return rows;
}
