import { sql } from 'kysely';
import type { Db } from '../../db/schema.ts';

export interface Digests {
  readonly sha512: Buffer;
  readonly blake2b512: Buffer;
}

/**
 * A file and its digests, which are null before it was read. Waits for a deletion or replacement to
 * end.
 */
export async function selectForRelease(db: Db, applicationId: string, fileId: string) {
  type Row = { objectId: string; size: number; checksum: Buffer; sha512: Buffer | null; blake2b512: Buffer | null };
  const { rows } = await sql<Row>`
    select coalesce(object_id, id) as "objectId", byte_size::float8 as size, checksum, sha512, blake2b512 from file left join file_digest on file_id = id
    where id = ${fileId} and application_id = ${applicationId} for key share of file`.execute(db);
  return rows[0];
}

/** Stores the digests of a file, unless it was deleted or replaced meanwhile. */
export async function insertDigests(
  db: Db,
  { fileId, objectId }: { readonly fileId: string; readonly objectId: string },
  { sha512, blake2b512 }: Digests,
): Promise<void> {
  // The lock waits for a replacement, and then finds the other object.
  await sql`insert into file_digest (file_id, sha512, blake2b512)
    select id, ${sha512}, ${blake2b512} from file
    where id = ${fileId} and coalesce(object_id, id) = ${objectId} for key share on conflict do nothing`.execute(db);
}
