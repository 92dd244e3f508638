import { type Kysely, sql } from 'kysely';
import type { FilesDatabase } from '../../db/schema.ts';
import { objectKey, parseObjectKey } from '../object-store/object-store.ts';

type Db = Kysely<FilesDatabase>;

/** A row that has an object: a file of an application, or the avatar of an account. */
export interface ObjectRow {
  readonly type: 'file' | 'avatar';
  readonly id: string;
  /** Id of the application, or of the account. */
  readonly ownerId: string;
  readonly displayName: string;
  readonly key: string;
  readonly byteSize: number;
  /** SHA-256, 32 bytes. */
  readonly checksum: Buffer;
}

/** Files and what they take of the allowance. */
export interface UsageFigures {
  readonly fileCount: number;
  readonly chargedMib: number;
}

/** What the files of an application add up to, and what is recorded; undefined where nothing is. */
export interface CheckedUsage {
  readonly applicationId: string;
  readonly recorded: UsageFigures | undefined;
  readonly actual: UsageFigures;
}

/** Sorts before every id. */
export const FIRST_ID = '00000000-0000-0000-0000-000000000000';

/** The next files by id. */
export async function selectFileRows(db: Db, after: string, limit: number): Promise<ObjectRow[]> {
  const rows = await db
    .selectFrom('file')
    .select(['id', 'application_id', 'display_name', 'byte_size', 'checksum'])
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute();
  return rows.map(({ id, application_id: ownerId, display_name: displayName, byte_size, checksum }) => {
    return { type: 'file', id, ownerId, displayName, key: objectKey(ownerId, id), byteSize: Number(byte_size), checksum };
  });
}

/** The next avatars of accounts, by id. */
export async function selectAvatarRows(db: Db, after: string, limit: number): Promise<ObjectRow[]> {
  const { rows } = await sql<{ id: string; account_id: string; image_id: string; byte_size: number; checksum: Buffer }>`
    select id, account_id, image_id, byte_size, checksum from avatar
    where id > ${after} and state = 'recorded' order by id limit ${limit}`.execute(db);
  return rows.map(({ id, account_id: ownerId, image_id, byte_size: byteSize, checksum }) => {
    return { type: 'avatar', id, ownerId, displayName: '', key: objectKey(ownerId, image_id), byteSize, checksum };
  });
}

/** Whether the row is still there and still has its object. */
export async function hasRow(db: Db, { type, id }: ObjectRow): Promise<boolean> {
  const found =
    type === 'file'
      ? db.selectFrom('file').select('id').where('id', '=', id)
      : db.selectFrom('avatar').select('id').where('id', '=', id).where('state', '=', 'recorded');
  return (await found.executeTakeFirst()) !== undefined;
}

/** Takes an avatar from its account; false where the account has another by now. */
export async function endAvatar(tx: Db, id: string): Promise<boolean> {
  const { numAffectedRows = 0n } = await sql`
    update avatar set state = 'replaced', due_at = now() where id = ${id} and state = 'recorded'`.execute(tx);
  return numAffectedRows > 0n;
}

/** Number of files by the recorded usage, which is cheap to query and may be wrong. */
export async function selectFileCount(db: Db): Promise<number> {
  const { rows } = await sql<{ count: string }>`select coalesce(sum(file_count), 0) as count from application_usage`.execute(db);
  return Number(rows[0]?.count);
}

/**
 * The keys that no file, avatar, upload or scheduled removal has. One statement reads all of them
 * at one moment, and whatever hands an object from one to another does so in one transaction.
 */
export async function selectUnknownKeys(db: Db, keys: readonly string[]): Promise<Set<string>> {
  const parts = keys.map((key) => parseObjectKey(key));
  const ownerIds = parts.map((part) => part?.ownerId ?? null);
  const ids = parts.map((part) => part?.id ?? null);
  const { rows } = await sql<{ key: string }>`
    select listed.key from unnest(${keys}::text[], ${ownerIds}::uuid[], ${ids}::uuid[]) as listed (key, owner_id, id)
    where not exists (select from file where file.id = listed.id and application_id = owner_id)
      and not exists (select from upload_intent as upload where upload.id = listed.id and application_id = owner_id)
      and not exists (
        select from avatar where image_id = listed.id and account_id = owner_id and state in ('stored', 'recorded'))
      and not exists (select from object_deletion where object_key = listed.key)`.execute(db);
  return new Set(rows.map((row) => row.key));
}

/** The usage of the next applications by id, recorded and actual at one moment. */
export async function selectUsagePage(db: Db, after: string, limit: number): Promise<CheckedUsage[]> {
  const { rows } = await sql<{ id: string; n: string | null; mib: string | null; actual_n: string; actual_mib: string }>`
    with page as (
      (select application_id from application_usage where application_id > ${after} order by application_id limit ${limit})
      union
      (select distinct application_id from file where application_id > ${after} order by application_id limit ${limit})
      order by application_id limit ${limit}
    ), actual as (
      select application_id, count(*) as n, sum(greatest(1, byte_size / 1048576)) as mib
      from file where application_id in (select application_id from page) group by application_id
    )
    select application_id as id, file_count as n, charged_mib as mib,
      coalesce(actual.n, 0) as actual_n, coalesce(actual.mib, 0) as actual_mib
    from page left join actual using (application_id) left join application_usage using (application_id)
    order by application_id`.execute(db);
  return rows.map(({ id, n, mib, actual_n, actual_mib }) => ({
    applicationId: id,
    recorded: n === null ? undefined : { fileCount: Number(n), chargedMib: Number(mib) },
    actual: { fileCount: Number(actual_n), chargedMib: Number(actual_mib) },
  }));
}

/** Records the actual usage. The row lock orders this and changes of the application's files. */
export async function recountUsage(tx: Db, applicationId: string): Promise<void> {
  await sql`
    insert into application_usage (application_id, account_id, file_count, charged_mib)
    select application_id, account_id, 0, 0 from file where application_id = ${applicationId} limit 1
    on conflict do nothing`.execute(tx);
  await sql`select from application_usage where application_id = ${applicationId} for update`.execute(tx);
  await sql`
    update application_usage as usage set file_count = actual.n, charged_mib = actual.mib
    from (
      select count(*) as n, coalesce(sum(greatest(1, byte_size / 1048576)), 0) as mib
      from file where application_id = ${applicationId}
    ) as actual
    where usage.application_id = ${applicationId}`.execute(tx);
}
