import { type RawBuilder, sql } from 'kysely';
import type { Db } from '../../db/schema.ts';

export interface ApplicationUsage {
  readonly applicationId: string;
  readonly fileCount: number;
  readonly chargedMib: number;
}

/**
 * The usage of each application of an account that has files, or of the given ones, with the
 * columns of the message `ApplicationUsage`.
 */
export async function selectUsages(db: Db, accountId: string, applicationIds: readonly string[]): Promise<object[]> {
  const isGiven = applicationIds.length > 0 ? sql`and application_id = any(${applicationIds}::uuid[])` : sql``;
  const { rows } = await sql<object>`
    select application_id, file_count, charged_mib
    from application_usage where account_id = ${accountId} and file_count > 0 ${isGiven}`.execute(db);
  return rows;
}

/** Usage of each application of an account, with what its unfinished resumable uploads reserve. */
export async function selectCharges(db: Db, accountId: string): Promise<ApplicationUsage[]> {
  const { rows } = await sql<ApplicationUsage>`
    select application_id as "applicationId", sum(file_count)::float8 as "fileCount", sum(charged_mib)::float8 as "chargedMib"
    from (
      select application_id, file_count, charged_mib from application_usage where account_id = ${accountId} and file_count > 0
      union all
      select application_id, case when file_id is null then 1 else 0 end, charged_mib from resumable_upload
      where account_id = ${accountId} and state = 'open' and expires_at > now()
    ) as charge group by application_id`.execute(db);
  return rows;
}

/** Serialises the commits of an account's files, and its creations of resumable uploads. */
export async function lockUsage(tx: Db, accountId: string): Promise<void> {
  await sql`select ${usageLock(sql`${accountId}::text`)}`.execute(tx);
}

export const usageLock = (accountId: RawBuilder<unknown>) =>
  sql`pg_advisory_xact_lock(hashtextextended('usage/' || ${accountId}, 0))`;

export async function addUsage(
  tx: Db,
  file: { readonly applicationId: string; readonly accountId: string; readonly chargedMib: number },
): Promise<void> {
  await sql`
    insert into application_usage as usage (application_id, account_id, file_count, charged_mib)
    values (${file.applicationId}, ${file.accountId}, 1, ${file.chargedMib})
    on conflict (application_id) do update
    set file_count = usage.file_count + 1, charged_mib = usage.charged_mib + excluded.charged_mib`.execute(tx);
}

/** Subtracts deleted files from the usage. A recorded usage that is too low blocks no deletion. */
export async function subtractUsage(
  tx: Db,
  applicationId: string,
  { fileCount, chargedMib }: { readonly fileCount: number; readonly chargedMib: number },
): Promise<void> {
  await sql`
    update application_usage
    set file_count = greatest(0, file_count - ${fileCount}), charged_mib = greatest(0, charged_mib - ${chargedMib})
    where application_id = ${applicationId}`.execute(tx);
}
