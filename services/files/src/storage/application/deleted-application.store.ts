import { type Kysely, sql } from 'kysely';
import type { FilesDatabase } from '../../db/schema.ts';

/** Names an application that is gone, and the account that had it. */
export interface DeletedApplication {
  readonly applicationId: string;
  readonly accountId: string;
}

/** A file whose row was removed. */
export interface RemovedFile {
  readonly id: string;
  readonly accountId: string;
  readonly displayName: string;
  readonly byteSize: number;
}

/** Marks the application as deleted; once only, and for good. */
export async function insertTombstone(tx: Kysely<FilesDatabase>, applicationId: string): Promise<void> {
  await tx
    .insertInto('deleted_application')
    .values({ application_id: applicationId })
    .onConflict((conflict) => conflict.column('application_id').doNothing())
    .execute();
}

/** Gives up the uploads to the application; the sweeper removes what they stored once nobody can be writing it any more. */
export async function abandonUploads(tx: Kysely<FilesDatabase>, { applicationId, accountId }: DeletedApplication): Promise<void> {
  await tx
    .updateTable('upload_intent')
    .set({ state: 'abandoned' })
    // An account has one upload at a time, which an index knows it by.
    .where('account_id', '=', accountId)
    .where('state', '<>', 'abandoned')
    .where('application_id', '=', applicationId)
    .execute();
}

/** Removes files of the application, newest first and so in one order whoever removes them at the same time. */
export async function deleteFiles(tx: Kysely<FilesDatabase>, applicationId: string, limit: number): Promise<RemovedFile[]> {
  const rows = await tx
    .deleteFrom('file')
    .where('id', 'in', (files) =>
      files
        .selectFrom('file')
        .select('id')
        .where('application_id', '=', applicationId)
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc')
        .limit(limit)
        .forUpdate(),
    )
    .returning(['id', 'account_id', 'display_name', 'byte_size'])
    .execute();
  return rows.map((row) => ({
    id: row.id,
    accountId: row.account_id,
    displayName: row.display_name,
    byteSize: Number(row.byte_size),
  }));
}

/** Notes objects that have no row any more. */
export async function insertObjectDeletions(tx: Kysely<FilesDatabase>, keys: readonly string[]): Promise<void> {
  await sql`insert into object_deletion (object_key) select unnest(${keys}::text[]) on conflict do nothing`.execute(tx);
}

/** Takes files that were removed out of what their application uses. The row goes in the end; until then it must not stop the clean-up. */
export async function subtractUsage(
  tx: Kysely<FilesDatabase>,
  applicationId: string,
  removed: { readonly fileCount: number; readonly chargedMib: number },
): Promise<void> {
  await sql`
    update application_usage
    set file_count = greatest(0, file_count - ${removed.fileCount}), charged_mib = greatest(0, charged_mib - ${removed.chargedMib})
    where application_id = ${applicationId}`.execute(tx);
}

/** Removes what is kept of what an application uses that has no file any more. */
export async function deleteUsage(db: Kysely<FilesDatabase>, applicationId: string): Promise<void> {
  await db.deleteFrom('application_usage').where('application_id', '=', applicationId).execute();
}

/** Which of some applications have no tombstone. */
export async function selectUnmarked(db: Kysely<FilesDatabase>, applicationIds: readonly string[]): Promise<Set<string>> {
  const { rows } = await sql<{ id: string }>`
    select id from unnest(${applicationIds}::uuid[]) as id
    where not exists (select from deleted_application where application_id = id)`.execute(db);
  return new Set(rows.map(({ id }) => id));
}

/** Applications that have a tombstone and still a counter, which is what goes last: somebody has begun to forget them, and may have been stopped. */
export async function selectHalfForgotten(db: Kysely<FilesDatabase>, limit: number): Promise<DeletedApplication[]> {
  const rows = await db
    .selectFrom('deleted_application as deleted')
    .innerJoin('application_usage as usage', 'usage.application_id', 'deleted.application_id')
    .select(['usage.application_id', 'usage.account_id'])
    .limit(limit)
    .execute();
  return rows.map((row) => ({ applicationId: row.application_id, accountId: row.account_id }));
}

/** Removes tombstones of applications that are wholly forgotten, by age in hours; answers how many. */
export async function deleteTombstones(db: Kysely<FilesDatabase>, ageHours: number, limit: number): Promise<number> {
  const result = await db
    .deleteFrom('deleted_application')
    .where('application_id', 'in', (tombstones) =>
      tombstones
        .selectFrom('deleted_application as deleted')
        .select('deleted.application_id')
        .where('deleted.created_at', '<', sql<Date>`now() - make_interval(hours => ${sql.lit(ageHours)})`)
        .where(({ not, exists, selectFrom }) =>
          not(
            exists(
              selectFrom('application_usage as usage')
                .select('usage.application_id')
                .whereRef('usage.application_id', '=', 'deleted.application_id'),
            ),
          ),
        )
        .orderBy('deleted.created_at')
        .limit(limit),
    )
    .executeTakeFirst();
  return Number(result.numDeletedRows);
}
