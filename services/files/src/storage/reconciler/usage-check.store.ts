import { type Kysely, sql } from 'kysely';
import type { FilesDatabase } from '../../db/schema.ts';
import type { CheckedUsage } from './finding.ts';

type Db = Kysely<FilesDatabase>;

interface UsageRow {
  readonly application_id: string;
  readonly recorded_count: string | null;
  readonly recorded_mib: string | null;
  readonly actual_count: string;
  readonly actual_mib: string;
}

/** What is recorded of the next applications by id, and what their files add up to, both of one moment. */
export async function selectUsagePage(db: Db, after: string, limit: number): Promise<CheckedUsage[]> {
  const { rows } = await sql<UsageRow>`
    with page as (
      (select application_id from application_usage where application_id > ${after} order by application_id limit ${limit})
      union
      (select distinct application_id from file where application_id > ${after} order by application_id limit ${limit})
      order by application_id limit ${limit}
    ), actual as (
      select application_id, count(*) as file_count, sum(greatest(1, byte_size / 1048576)) as charged_mib
      from file where application_id in (select application_id from page) group by application_id
    )
    select page.application_id, recorded.file_count as recorded_count, recorded.charged_mib as recorded_mib,
      coalesce(actual.file_count, 0) as actual_count, coalesce(actual.charged_mib, 0) as actual_mib
    from page left join actual using (application_id) left join application_usage as recorded using (application_id)
    order by page.application_id`.execute(db);
  return rows.map((row) => ({
    applicationId: row.application_id,
    recorded:
      row.recorded_count === null ? undefined : { fileCount: Number(row.recorded_count), chargedMib: Number(row.recorded_mib) },
    actual: { fileCount: Number(row.actual_count), chargedMib: Number(row.actual_mib) },
  }));
}

/**
 * Records what the files of an application add up to. Whoever adds or removes one holds the recorded row until that is committed, so that with
 * the row in hand the files that can be seen are the ones to count.
 */
export async function recountUsage(tx: Db, applicationId: string): Promise<void> {
  await sql`
    insert into application_usage (application_id, account_id, file_count, charged_mib)
    select application_id, account_id, 0, 0 from file where application_id = ${applicationId} limit 1
    on conflict do nothing`.execute(tx);
  await sql`select from application_usage where application_id = ${applicationId} for update`.execute(tx);
  await sql`
    update application_usage as usage set file_count = actual.file_count, charged_mib = actual.charged_mib
    from (
      select count(*) as file_count, coalesce(sum(greatest(1, byte_size / 1048576)), 0) as charged_mib
      from file where application_id = ${applicationId}
    ) as actual
    where usage.application_id = ${applicationId}`.execute(tx);
}
