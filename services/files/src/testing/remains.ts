import type pg from 'pg';
import type { OwnedRef } from './fake-apps.ts';

/** Counts the rows of an application. */
export async function remainsOf(db: pg.Pool, applicationId: string) {
  const { rows } = await db.query(
    `select (select count(*)::int from file where application_id = $1) as files,
        (select count(*)::int from object_deletion where object_key like $1 || '/%') as objects,
        exists (select from deleted_application where application_id = $1) as is_marked,
        (select json_build_object('fileCount', file_count, 'chargedMib', charged_mib) from application_usage
          where application_id = $1) as usage`,
    [applicationId],
  );
  const [{ files, objects, is_marked: isMarked, usage }] = rows;
  return { files, objects, isMarked, usage: usage ?? undefined };
}

/** Rows of an application with this many files that stay after its clean-up. */
export const cleanedUp = (fileCount: number) => ({ files: 0, usage: undefined, objects: fileCount, isMarked: true });

/** Makes rows of files, of 0.5 MiB to 3 MiB, that have no objects, as fast as the database can. */
export async function insertFiles(db: pg.Pool, { accountId, applicationId }: OwnedRef, count: number): Promise<void> {
  await db.query(
    `with made as (
      insert into file (id, account_id, application_id, display_name, byte_size, checksum, content_type, created_at)
      select gen_random_uuid(), $1, $2, 'file-' || i, 524288 * (i % 6 + 1), sha256('x'), 'text/plain', now() + i * interval '1 ms'
      from generate_series(1, $3::int) i
      returning byte_size)
    insert into application_usage (application_id, account_id, file_count, charged_mib)
    select $2, $1, count(*), sum(greatest(1, byte_size / 1048576)) from made having count(*) > 0`,
    [accountId, applicationId, count],
  );
}
