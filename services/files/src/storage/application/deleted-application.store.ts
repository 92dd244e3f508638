import type { DeletedApplication } from '@latchkey/deletions/follow-deletions';
import { type Kysely, sql } from 'kysely';
import type { FilesDatabase } from '../../db/schema.ts';

type Db = Kysely<FilesDatabase>;

export async function insertTombstone(tx: Db, applicationId: string): Promise<void> {
  await sql`insert into deleted_application (application_id) values (${applicationId}) on conflict do nothing`.execute(tx);
}

export async function isDeleted(db: Db, applicationId: string): Promise<boolean> {
  const { rows } = await sql`select from deleted_application where application_id = ${applicationId}`.execute(db);
  return rows.length > 0;
}

export async function deleteUsage(db: Db, applicationId: string): Promise<void> {
  await db.deleteFrom('application_usage').where('application_id', '=', applicationId).execute();
}

export async function selectUnmarked(db: Db, applications: readonly DeletedApplication[]): Promise<DeletedApplication[]> {
  const ids = applications.map(({ applicationId }) => applicationId);
  const { rows } = await sql<{ id: string }>`
    select id from unnest(${ids}::uuid[]) as id
    where not exists (select from deleted_application where application_id = id)`.execute(db);
  const unmarked = new Set(rows.map(({ id }) => id));
  return applications.filter(({ applicationId }) => unmarked.has(applicationId));
}

/** Applications with a tombstone and a usage row, which goes last: their clean-up is incomplete. */
export async function selectHalfDeleted(db: Db, limit: number): Promise<DeletedApplication[]> {
  const { rows } = await sql<DeletedApplication>`
    select application_id as "applicationId", account_id as "accountId"
    from deleted_application join application_usage using (application_id) limit ${limit}`.execute(db);
  return rows;
}

/** Deletes old tombstones of applications that are cleaned up; returns how many. */
export async function deleteTombstones(db: Db, ageHours: number, limit: number): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    delete from deleted_application where application_id in (
      select application_id from deleted_application as deleted
      where created_at < now() - make_interval(hours => ${ageHours}::int)
        and not exists (select from application_usage as usage where usage.application_id = deleted.application_id)
      order by created_at limit ${limit})`.execute(db);
  return Number(numAffectedRows);
}
