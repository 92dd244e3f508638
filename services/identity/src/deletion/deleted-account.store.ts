import type { Selectable } from 'kysely';
import { apiKeyEpoch, sessionEpoch } from '../authentication/principal-epoch.ts';
import type { Db, DeletedAccountTable } from '../db/schema.ts';

export type DeletedAccountRow = Pick<Selectable<DeletedAccountTable>, 'account_id' | 'deleted_at'>;

/**
 * Deletes an account with all that identity stores of it but its audit log, and announces that to
 * the other services.
 * @returns the epochs of its credentials, to be ended after the commit
 */
export async function deleteAccountRow(tx: Db, accountId: string, now: Date): Promise<string[]> {
  const sessions = await tx.deleteFrom('session').where('account_id', '=', accountId).returning('token_hash').execute();
  const keys = await tx.deleteFrom('api_key').where('account_id', '=', accountId).returning('public_id').execute();
  await tx.deleteFrom('account').where('id', '=', accountId).execute();
  await tx.insertInto('deleted_account').values({ account_id: accountId, deleted_at: now }).execute();
  return [...sessions.map((row) => sessionEpoch(row.token_hash)), ...keys.map((row) => apiKeyEpoch(row.public_id))];
}

/** Deleted accounts that may still have applications, the oldest first, after a given one. */
export async function selectIncomplete(db: Db, after: DeletedAccountRow | undefined, limit: number) {
  const page = selectAfter(db, after?.deleted_at ?? new Date(0), after?.account_id, limit);
  return page.where('completed_at', 'is', null).execute();
}

export async function completeDeletion(db: Db, accountId: string, now: Date): Promise<void> {
  await db.updateTable('deleted_account').set({ completed_at: now }).where('account_id', '=', accountId).execute();
}

/** Deletions from a time on; of those at exactly that time, the ones after an account. */
export async function selectDeletedSince(db: Db, since: Date, after: string | undefined, limit: number) {
  return selectAfter(db, since, after, limit).execute();
}

function selectAfter(db: Db, since: Date, after: string | undefined, limit: number) {
  const all = db.selectFrom('deleted_account').select(['account_id', 'deleted_at']);
  const page = all.where(({ and, or, eb }) =>
    after === undefined
      ? eb('deleted_at', '>=', since)
      : or([eb('deleted_at', '>', since), and([eb('deleted_at', '=', since), eb('account_id', '>', after)])]),
  );
  return page.orderBy('deleted_at').orderBy('account_id').limit(limit);
}
