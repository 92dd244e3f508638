import type { Insertable, Kysely } from 'kysely';
import type { FilesDatabase, FileTable } from '../../db/schema.ts';

/** Whether the application is known to be deleted. */
export async function isDeleted(tx: Kysely<FilesDatabase>, applicationId: string): Promise<boolean> {
  const row = await tx
    .selectFrom('deleted_application')
    .select('application_id')
    .where('application_id', '=', applicationId)
    .executeTakeFirst();
  return row !== undefined;
}

export async function insertFile(tx: Kysely<FilesDatabase>, row: Insertable<FileTable>): Promise<void> {
  await tx.insertInto('file').values(row).execute();
}

/** Whether an upload has become a file. */
export async function isCommitted(db: Kysely<FilesDatabase>, id: string): Promise<boolean> {
  return (await db.selectFrom('file').select('id').where('id', '=', id).executeTakeFirst()) !== undefined;
}
