import { type Kysely, sql } from 'kysely';
import type { FilesDatabase } from '../../db/schema.ts';

export interface Digests {
  readonly sha512: Buffer;
  readonly blake2b512: Buffer;
}

/** A file and its digests, which are null before it was read. Waits for a deletion to end. */
export async function selectForRelease(db: Kysely<FilesDatabase>, applicationId: string, fileId: string) {
  const { rows } = await sql<{ size: number; checksum: Buffer; sha512: Buffer | null; blake2b512: Buffer | null }>`
    select byte_size::float8 as size, checksum, sha512, blake2b512 from file left join file_digest on file_id = id
    where id = ${fileId} and application_id = ${applicationId} for key share of file`.execute(db);
  return rows[0];
}

/** Stores the digests of a file, unless it was deleted meanwhile. */
export async function insertDigests(db: Kysely<FilesDatabase>, fileId: string, { sha512, blake2b512 }: Digests): Promise<void> {
  await sql`insert into file_digest (file_id, sha512, blake2b512)
    select id, ${sha512}, ${blake2b512} from file where id = ${fileId} on conflict do nothing`.execute(db);
}
