import { isMissingTable } from '@latchkey/kit/database/database';
import { sql } from 'kysely';
import type pg from 'pg';
import type { Db } from '../../db/schema.ts';

export interface StoredFile {
  readonly id: string;
  /** Of its content: another one once the file is replaced. */
  readonly objectId: string;
  readonly applicationId: string;
  readonly displayName: string;
  readonly byteSize: number;
  readonly checksum: Buffer;
  readonly contentType: string;
  readonly createdAt: Date;
}

/** One statement, and so one moment: the counter, and the first entry of the index. */
const SELECT_METADATA = {
  name: 'select-files-metadata',
  text: `select
      coalesce((select file_count from application_usage where application_id = $1), 0) as total_files,
      (select created_at from file where application_id = $1 order by created_at desc, id desc limit 1) as last_uploaded_at`,
};

/** With the columns of the message `GetFilesMetadataResponse`. */
export async function selectMetadata(pool: pg.Pool, applicationId: string): Promise<object> {
  return (await pool.query({ ...SELECT_METADATA, values: [applicationId] })).rows[0];
}

const FILE = `
  select id, coalesce(object_id, id) as "objectId", application_id as "applicationId", display_name as "displayName",
    byte_size::float8 as "byteSize", checksum, content_type as "contentType", created_at as "createdAt" from file`;

const SELECT_FILE = { name: 'select-file', text: `${FILE} where id = $1` };

const SELECT_FILE_OF_OBJECT = {
  name: 'select-file-of-object',
  text: `${FILE} where id = $1 and object_id is null union all ${FILE} where object_id = $1`,
};

export async function selectFile(pool: pg.Pool, id: string): Promise<StoredFile | undefined> {
  return (await pool.query<StoredFile>({ ...SELECT_FILE, values: [id] })).rows[0];
}

/** The file whose content an object is; none once it is replaced. */
export async function selectFileOfObject(pool: pg.Pool, objectId: string): Promise<StoredFile | undefined> {
  return (await pool.query<StoredFile>({ ...SELECT_FILE_OF_OBJECT, values: [objectId] })).rows[0];
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
 *
 * @param which with an object id, only while the file has that content
 */
export async function deleteFiles(
  tx: Db,
  applicationId: string,
  which: { readonly fileId: string; readonly objectId?: string | undefined } | { readonly limit: number },
) {
  const condition =
    'fileId' in which
      ? sql`id = ${which.fileId} ${which.objectId ? sql`and coalesce(object_id, id) = ${which.objectId}` : sql``}`
      : // An array is made once; PostgreSQL may repeat the query of an `in`, and exceed the limit.
        sql`id = any(array(
          select id from file where application_id = ${applicationId}
          order by created_at desc, id desc limit ${which.limit} for update))`;
  const { rows } = await sql<Pick<StoredFile, 'id' | 'objectId' | 'displayName' | 'byteSize'> & { accountId: string }>`
    delete from file where application_id = ${applicationId} and ${condition}
    returning id, coalesce(object_id, id) as "objectId", account_id as "accountId", display_name as "displayName", byte_size::float8 as "byteSize"`.execute(
    tx,
  );
  return rows;
}

export async function insertFile(tx: Db, accountId: string, file: Omit<StoredFile, 'objectId'>): Promise<void> {
  const { id, applicationId, displayName, byteSize, checksum, contentType, createdAt } = file;
  await sql`
    insert into file (id, account_id, application_id, display_name, byte_size, checksum, content_type, created_at)
    values (${id}, ${accountId}, ${applicationId}, ${displayName}, ${byteSize}, ${checksum}, ${contentType}, ${createdAt})`.execute(
    tx,
  );
}

/** Locks the file that has a name, for its replacement: a deletion or the reading of it waits. */
export async function lockNamedFile(tx: Db, applicationId: string, displayName: string) {
  const { rows } = await sql<Pick<StoredFile, 'id' | 'objectId' | 'byteSize' | 'checksum'>>`
    select id, coalesce(object_id, id) as "objectId", byte_size::float8 as "byteSize", checksum from file
    where application_id = ${applicationId} and display_name = ${displayName} for update`.execute(tx);
  return rows[0];
}

/**
 * Gives a locked file another content. Its time differs from the former one by a whole second at
 * least, as `Last-Modified` has no smaller unit. The digests of the former content are deleted.
 */
export async function updateContent(
  tx: Db,
  file: Pick<StoredFile, 'id' | 'objectId' | 'byteSize' | 'checksum' | 'contentType' | 'createdAt'>,
): Promise<void> {
  await sql`delete from file_digest where file_id = ${file.id}`.execute(tx);
  await sql`
    update file set object_id = ${file.objectId}, byte_size = ${file.byteSize}, checksum = ${file.checksum},
      content_type = ${file.contentType},
      created_at = greatest(${file.createdAt}, date_trunc('second', created_at) + interval '1 second')
    where id = ${file.id}`.execute(tx);
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
      and audit_entry.account_id = ${upload.accountId} and action in ('file.uploaded', 'file.replaced')
      and changes->>'checksum' = encode(checksum, 'hex') and at > now() - interval '10 minutes' and credential_id = ${credentialId}`.execute(
    db,
  );
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

/** Holders of a name: a file, and an unfinished resumable upload that has reserved it. */
export interface NameHolders {
  readonly file: Pick<StoredFile, 'id' | 'byteSize'> | undefined;
  readonly isReserved: boolean;
}

export async function selectNameHolders(db: Db, applicationId: string, displayName: string): Promise<NameHolders> {
  const { rows } = await sql<{ id: string | null; byteSize: number }>`
    select id, byte_size::float8 as "byteSize" from file where application_id = ${applicationId} and display_name = ${displayName}
    union all
    select null, 0 from resumable_upload
    where application_id = ${applicationId} and display_name = ${displayName} and state = 'open' and expires_at > now()`.execute(
    db,
  );
  const [file] = rows.flatMap(({ id, byteSize }) => (id === null ? [] : [{ id, byteSize }]));
  return { file, isReserved: rows.some(({ id }) => id === null) };
}

/** True if an upload can't have the name, unless it replaces the file. */
export const isTaken = ({ file, isReserved }: NameHolders, isReplacement = false): boolean =>
  isReserved || (file !== undefined && !isReplacement);
