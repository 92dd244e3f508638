import { isMissingTable } from '@latchkey/kit/database/schema-check';
import { type Kysely, type Selectable, sql } from 'kysely';
import type pg from 'pg';
import type { FilesDatabase, FileTable } from '../../db/schema.ts';

/** What the files of an application come to. */
export interface FilesMetadata {
  readonly totalFiles: number;
  /** Null means that there are none. */
  readonly lastUploadedAt: Date | null;
}

/** What a download URL is made of. */
export type DownloadableFile = Pick<Selectable<FileTable>, 'display_name' | 'content_type'>;

/** One statement, and so one moment: the kept counter, and the first entry of the index. */
const SELECT_METADATA = {
  name: 'select-files-metadata',
  text: `select
      coalesce((select file_count from application_usage where application_id = $1), 0) as file_count,
      (select created_at from file where application_id = $1 order by created_at desc, id desc limit 1) as last_created_at`,
};

/** How many files an application has, and when the newest was uploaded. */
export async function selectMetadata(pool: pg.Pool, applicationId: string): Promise<FilesMetadata> {
  type Row = { readonly file_count: string; readonly last_created_at: Date | null };
  const { rows } = await pool.query<Row>({ ...SELECT_METADATA, values: [applicationId] });
  const [row] = rows;
  return { totalFiles: Number(row?.file_count ?? 0), lastUploadedAt: row?.last_created_at ?? null };
}

/** Whether anything is to be in the store: a file, or an avatar. None is where there are no tables yet. */
export async function hasStored(db: Kysely<FilesDatabase>): Promise<boolean> {
  try {
    const { rows } = await sql<{ stored: boolean }>`
      select exists (select from file) or exists (select from avatar where state = 'recorded') as stored`.execute(db);
    return rows[0]?.stored === true;
  } catch (err) {
    if (isMissingTable(err)) return false;
    throw err;
  }
}

/**
 * Makes the renames of one application follow one another: two that swap names would wait for each other. Nothing else waits for it, as it is
 * not the lock that uploads share.
 */
export async function lockRenames(tx: Kysely<FilesDatabase>, applicationId: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`rename/${applicationId}`}, 0))`.execute(tx);
}

/** The name of a file, or undefined when the application has no such file. */
export async function selectName(tx: Kysely<FilesDatabase>, applicationId: string, fileId: string): Promise<string | undefined> {
  const row = await tx
    .selectFrom('file')
    .select('display_name')
    .where('id', '=', fileId)
    .where('application_id', '=', applicationId)
    .executeTakeFirst();
  return row?.display_name;
}

/** Gives a file a name; false when the application has no such file. Fails on the constraint `file_name` where another one has the name. */
export async function updateName(
  tx: Kysely<FilesDatabase>,
  applicationId: string,
  fileId: string,
  name: string,
): Promise<boolean> {
  const result = await tx
    .updateTable('file')
    .set({ display_name: name })
    .where('id', '=', fileId)
    .where('application_id', '=', applicationId)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Removes a file and answers whose it was, its name and its size in bytes, or undefined when the application has no such file. */
export async function removeFile(
  tx: Kysely<FilesDatabase>,
  applicationId: string,
  fileId: string,
): Promise<{ readonly accountId: string; readonly displayName: string; readonly byteSize: number } | undefined> {
  const row = await tx
    .deleteFrom('file')
    .where('id', '=', fileId)
    .where('application_id', '=', applicationId)
    .returning(['account_id', 'display_name', 'byte_size'])
    .executeTakeFirst();
  return row && { accountId: row.account_id, displayName: row.display_name, byteSize: Number(row.byte_size) };
}

/** Takes a file that was removed out of what its application uses. A record that is too low must not keep its owner from deleting. */
export async function subtractUsage(tx: Kysely<FilesDatabase>, applicationId: string, chargedMib: number): Promise<void> {
  await sql`
    update application_usage
    set file_count = greatest(0, file_count - 1), charged_mib = greatest(0, charged_mib - ${chargedMib})
    where application_id = ${applicationId}`.execute(tx);
}

/** How long whoever removed a file has for its object before the sweeper takes it, in milliseconds. */
export const OWN_REMOVAL_MS = 15_000;

/** Notes an object that has no row any more. */
export async function insertObjectDeletion(
  tx: Kysely<FilesDatabase>,
  key: string,
  ownMs: number = OWN_REMOVAL_MS,
): Promise<void> {
  const dueAt = sql<Date>`now() + make_interval(secs => ${ownMs / 1000})`;
  await tx.insertInto('object_deletion').values({ object_key: key, due_at: dueAt }).execute();
}

/** What a download URL of the file is made of, or undefined when the application has no such file. */
export async function selectDownloadable(
  db: Kysely<FilesDatabase>,
  applicationId: string,
  fileId: string,
): Promise<DownloadableFile | undefined> {
  return db
    .selectFrom('file')
    .select(['display_name', 'content_type'])
    .where('id', '=', fileId)
    .where('application_id', '=', applicationId)
    .executeTakeFirst();
}

/** Counts a download URL; false when the file is gone. The lock on the file's row keeps it from going meanwhile. */
export async function countDownloadUrl(db: Kysely<FilesDatabase>, fileId: string, at: Date): Promise<boolean> {
  const result = await sql`
    insert into file_download_url as counted (file_id, created_count, last_created_at)
    select id, 1, ${at}::timestamptz from file where id = ${fileId} for key share
    on conflict (file_id) do update
    set created_count = counted.created_count + 1, last_created_at = greatest(counted.last_created_at, excluded.last_created_at)`.execute(
    db,
  );
  return (result.numAffectedRows ?? 0n) > 0n;
}

/** Whether a file of the application has the name. */
export async function isNameTaken(db: Kysely<FilesDatabase>, applicationId: string, displayName: string): Promise<boolean> {
  const row = await db
    .selectFrom('file')
    .select('id')
    .where('application_id', '=', applicationId)
    .where('display_name', '=', displayName)
    .executeTakeFirst();
  return row !== undefined;
}
