import type { Kysely } from 'kysely';
import type { AppsDatabase } from '../db/schema.ts';

/** The levels in their order, or undefined when the account has no such application. */
export async function selectLevels(
  db: Kysely<AppsDatabase>,
  accountId: string,
  applicationId: string,
): Promise<string[] | undefined> {
  const row = await db
    .selectFrom('application')
    .select('license_levels')
    .where('id', '=', applicationId)
    .where('account_id', '=', accountId)
    .executeTakeFirst();
  return row?.license_levels;
}

/** Replaces the whole set in one statement; false when the account has no such application. */
export async function replaceLevels(
  db: Kysely<AppsDatabase>,
  accountId: string,
  applicationId: string,
  levels: readonly string[],
): Promise<boolean> {
  const result = await db
    .updateTable('application')
    .set({ license_levels: [...levels] })
    .where('id', '=', applicationId)
    .where('account_id', '=', accountId)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}
