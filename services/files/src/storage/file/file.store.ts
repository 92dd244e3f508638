import type { Origin } from '@latchkey/audit/actor';
import { type Changes, recordAudit } from '@latchkey/audit/record';
import { isMissingTable } from '@latchkey/kit/database/database';
import { type Insertable, type Kysely, sql } from 'kysely';
import type pg from 'pg';
import type { FilesDatabase, FileTable } from '../../db/schema.ts';

type Db = Kysely<FilesDatabase>;

export interface StoredFile {
  readonly id: string;
  readonly applicationId: string;
  readonly displayName: string;
  readonly byteSize: number;
  readonly checksum: Buffer;
  readonly contentType: string;
  readonly createdAt: Date;
}

interface FileEvent {
  readonly accountId: string;
  readonly applicationId: string;
  readonly fileId: string;
  readonly action: 'file.uploaded' | 'file.renamed' | 'file.deleted';
  readonly changes: Changes;
}

/** Records changes of files in the audit log, in the transaction that makes them. */
export async function recordFiles(tx: Db, origin: Origin, ...events: readonly FileEvent[]): Promise<void> {
  const entries = events.map(({ accountId, applicationId, fileId, action, changes }) => {
    return { accountId, applicationId, action, changes, subject: { kind: 'file' as const, id: fileId } };
  });
  await recordAudit(tx, origin, ...entries);
}

/** One statement, and so one moment: the counter, and the first entry of the index. */
const SELECT_METADATA = {
  name: 'select-files-metadata',
  text: `select
      coalesce((select file_count from application_usage where application_id = $1), 0) as file_count,
      (select created_at from file where application_id = $1 order by created_at desc, id desc limit 1) as last_created_at`,
};

export async function selectMetadata(pool: pg.Pool, applicationId: string) {
  type Row = { readonly file_count: string; readonly last_created_at: Date | null };
  const { rows } = await pool.query<Row>({ ...SELECT_METADATA, values: [applicationId] });
  return { totalFiles: Number(rows[0]?.file_count ?? 0), lastUploadedAt: rows[0]?.last_created_at ?? null };
}

const SELECT_FILE = {
  name: 'select-file',
  text: `select id, application_id as "applicationId", display_name as "displayName", byte_size::float8 as "byteSize",
      checksum, content_type as "contentType", created_at as "createdAt" from file where id = $1`,
};

export async function selectFile(pool: pg.Pool, id: string): Promise<StoredFile | undefined> {
  return (await pool.query<StoredFile>({ ...SELECT_FILE, values: [id] })).rows[0];
}

/** True if the store should have any object. False where there are no tables yet. */
export async function hasStored(db: Db): Promise<boolean> {
  try {
    const { rows } = await sql<{ stored: boolean }>`
      select exists (select from file) or exists (select from avatar where state = 'recorded') as stored`.execute(db);
    return rows[0]?.stored === true;
  } catch (err) {
    if (isMissingTable(err)) return false;
    throw err;
  }
}

/** Serialises the renames of one application, as two that swap names would deadlock. */
export async function lockRenames(tx: Db, applicationId: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`rename/${applicationId}`}, 0))`.execute(tx);
}

/**
 * Returns the previous name, or undefined when the application has no such file. Throws on the
 * constraint `file_name` where another file has the name.
 */
export async function updateName(
  tx: Db,
  { applicationId, fileId }: { readonly applicationId: string; readonly fileId: string },
  name: string,
): Promise<string | undefined> {
  const { rows } = await sql<{ previous: string }>`
    with old as materialized (
      select id, display_name from file where id = ${fileId} and application_id = ${applicationId} for update)
    update file set display_name = ${name} from old where file.id = old.id
    returning old.display_name as previous`.execute(tx);
  return rows[0]?.previous;
}

/**
 * Deletes one file of an application or some, newest first, so that concurrent deletions lock rows
 * in one order. Empty when the application has no such files.
 */
export async function deleteFiles(
  tx: Db,
  applicationId: string,
  which: { readonly fileId: string } | { readonly limit: number },
) {
  const condition =
    'fileId' in which
      ? sql`id = ${which.fileId}`
      : // An array is made once; PostgreSQL may repeat the query of an `in`, and exceed the limit.
        sql`id = any(array(
          select id from file where application_id = ${applicationId}
          order by created_at desc, id desc limit ${which.limit} for update))`;
  const { rows } = await sql<Pick<StoredFile, 'id' | 'displayName' | 'byteSize'> & { accountId: string }>`
    delete from file where application_id = ${applicationId} and ${condition}
    returning id, account_id as "accountId", display_name as "displayName", byte_size::float8 as "byteSize"`.execute(tx);
  return rows;
}

export async function insertFile(tx: Db, row: Insertable<FileTable>): Promise<void> {
  await tx.insertInto('file').values(row).execute();
}

/**
 * The file that a credential uploaded with this name and checksum within the last 10 minutes, by
 * its entry in the audit log. A repeated upload is answered with it.
 */
export async function selectRecentUpload(
  db: Db,
  upload: { readonly accountId: string; readonly applicationId: string; readonly displayName: string; readonly checksum: Buffer },
  credentialId: string,
): Promise<Pick<StoredFile, 'id' | 'byteSize' | 'checksum'> | undefined> {
  const { rows } = await sql<Pick<StoredFile, 'id' | 'byteSize' | 'checksum'>>`
    select file.id, byte_size::float8 as "byteSize", checksum from file
      join audit_entry on subject_id = file.id and audit_entry.account_id = file.account_id
    where file.application_id = ${upload.applicationId} and display_name = ${upload.displayName} and checksum = ${upload.checksum}
      and audit_entry.account_id = ${upload.accountId} and action = 'file.uploaded'
      and at > now() - interval '10 minutes' and credential_id = ${credentialId}`.execute(db);
  return rows[0];
}

/** Counts a download URL; false when the file is gone. The row lock delays a deletion. */
export async function countDownloadUrl(db: Db, fileId: string, at: Date): Promise<boolean> {
  const { numAffectedRows = 0n } = await sql`
    insert into file_download_url as counted (file_id, created_count, last_created_at)
    select id, 1, ${at}::timestamptz from file where id = ${fileId} for key share
    on conflict (file_id) do update set created_count = counted.created_count + 1,
      last_created_at = greatest(counted.last_created_at, excluded.last_created_at)`.execute(db);
  return numAffectedRows > 0n;
}

/** True if a file has the name, or an unfinished resumable upload has reserved it. */
export async function isNameTaken(db: Db, applicationId: string, displayName: string): Promise<boolean> {
  const { rows } = await sql`
    select from file where application_id = ${applicationId} and display_name = ${displayName}
    union all
    select from resumable_upload
    where application_id = ${applicationId} and display_name = ${displayName} and state = 'open' and expires_at > now()`.execute(
    db,
  );
  return rows.length > 0;
}
