import { type Kysely, sql } from 'kysely';
import type { FilesDatabase } from '../../db/schema.ts';
import { parseObjectKey } from '../object-store/object-key-parts.ts';
import type { CheckedAvatar, CheckedFile } from './finding.ts';

type Db = Kysely<FilesDatabase>;

/** Sorts before every id. */
export const FIRST_ID = '00000000-0000-0000-0000-000000000000';

/** The next rows by id. */
export async function selectFilePage(db: Db, after: string, limit: number): Promise<CheckedFile[]> {
  const rows = await db
    .selectFrom('file')
    .select(['id', 'application_id', 'display_name', 'byte_size', 'checksum'])
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute();
  return rows.map((row) => ({
    id: row.id,
    applicationId: row.application_id,
    displayName: row.display_name,
    byteSize: Number(row.byte_size),
    checksum: row.checksum,
  }));
}

/** The next avatars that are the accounts', by id. */
export async function selectAvatarPage(db: Db, after: string, limit: number): Promise<CheckedAvatar[]> {
  const rows = await db
    .selectFrom('avatar')
    .select(['id', 'account_id', 'image_id', 'byte_size', 'checksum'])
    .where('id', '>', after)
    .where('state', '=', 'recorded')
    .orderBy('id')
    .limit(limit)
    .execute();
  return rows.flatMap(({ id, account_id: accountId, image_id: imageId, byte_size: byteSize, checksum }) =>
    imageId === null || byteSize === null || checksum === null ? [] : [{ id, accountId, imageId, byteSize, checksum }],
  );
}

/** Whether an avatar is still the account's. */
export async function isRecorded(db: Db, id: string): Promise<boolean> {
  const row = await db.selectFrom('avatar').select('id').where('id', '=', id).where('state', '=', 'recorded').executeTakeFirst();
  return row !== undefined;
}

/** Takes an avatar from its account; false where it is the account's no more. */
export async function dropAvatar(tx: Db, id: string): Promise<boolean> {
  const result = await tx
    .updateTable('avatar')
    .set({ state: 'replaced', due_at: sql<Date>`now()` })
    .where('id', '=', id)
    .where('state', '=', 'recorded')
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** How many files there are by what is recorded, which is cheap to ask and may be wrong. */
export async function selectFileCount(db: Db): Promise<number> {
  const row = await db
    .selectFrom('application_usage')
    .select(({ fn }) => fn.sum<string | null>('file_count').as('count'))
    .executeTakeFirst();
  return Number(row?.count ?? 0);
}

/** Whether the row is still there as it was read. */
export async function isUnchanged(db: Db, file: CheckedFile): Promise<boolean> {
  const row = await db
    .selectFrom('file')
    .select('id')
    .where('id', '=', file.id)
    .where('application_id', '=', file.applicationId)
    .where('byte_size', '=', String(file.byteSize))
    .where('checksum', '=', file.checksum)
    .executeTakeFirst();
  return row !== undefined;
}

/**
 * Those of the keys that neither a file, an avatar, an upload nor a pending removal knows. One statement sees all at one moment, and whatever moves
 * an object from one to another does so in one transaction.
 */
export async function selectUnknownKeys(db: Db, keys: readonly string[]): Promise<Set<string>> {
  const parts = keys.map((key) => parseObjectKey(key));
  const applicationIds = parts.map((part) => part?.applicationId ?? null);
  const fileIds = parts.map((part) => part?.fileId ?? null);
  const { rows } = await sql<{ key: string }>`
    select listed.key
    from unnest(${keys}::text[], ${applicationIds}::uuid[], ${fileIds}::uuid[]) as listed (key, application_id, file_id)
    where not exists (select from file where file.id = listed.file_id and file.application_id = listed.application_id)
      and not exists (
        select from upload_intent as upload where upload.id = listed.file_id and upload.application_id = listed.application_id)
      and not exists (
        select from avatar
        where avatar.image_id = listed.file_id and avatar.account_id = listed.application_id and avatar.state in ('stored', 'recorded'))
      and not exists (select from object_deletion as deletion where deletion.object_key = listed.key)`.execute(db);
  return new Set(rows.map((row) => row.key));
}
