import { type Insertable, type Selectable, sql, type Updateable } from 'kysely';
import type { Db, ReleaseArtifactTable, ReleaseTable } from '../db/schema.ts';

export type ReleaseRow = Selectable<ReleaseTable>;
export type ArtifactRow = Omit<Selectable<ReleaseArtifactTable>, 'release_id' | 'position'> & {
  /** Id of the transaction that wrote the row. */
  readonly revision: string;
};
export type ReleaseWithArtifacts = ReleaseRow & { readonly artifacts: readonly ArtifactRow[] };

const RELEASE = [
  ...(['release.id', 'application_id', 'release.version', 'channel', 'notes', 'release.status'] as const),
  ...(['rollout_percent', 'published_at', 'release.created_at'] as const),
] as const;

const artifacts = sql<ArtifactRow[]>`coalesce((
  select jsonb_agg(jsonb_build_object('file_id', file_id, 'name', name, 'platform', platform, 'arch', arch, 'kind', kind,
    'signature', signature, 'byte_size', byte_size::text, 'checksum', checksum, 'sha512', sha512,
    'revision', xmin::text) order by position)
  from release_artifact where release_id = release.id), '[]')`;

/** Releases with their artifacts. */
const releases = (db: Db) =>
  db
    .selectFrom('release')
    .select([...RELEASE])
    .select(artifacts.as('artifacts'));

/** Bytes of a listed release besides its notes, and of an artifact besides name and signature. */
const RELEASE_BYTES = 300;
const ARTIFACT_BYTES = 400;

/** Releases of an application, newest first: at most `limit`, of at most `bytesMax` in all. */
export function selectReleases(db: Db, applicationId: string, { limit, bytesMax }: { limit: number; bytesMax: number }) {
  const newest = sql<string>`(
    select id from (
      select id, sum(octet_length(notes) + ${RELEASE_BYTES}::int + coalesce((
          select sum(octet_length(name) + octet_length(signature) + ${ARTIFACT_BYTES}::int)
          from release_artifact where release_id = newest.id), 0)) over (order by created_at desc, id desc) as bytes
      from (
        select id, notes, created_at from release where application_id = ${applicationId}
        order by created_at desc, id desc limit ${limit}
      ) as newest
    ) as summed where bytes <= ${bytesMax}
  )`;
  return releases(db).where('release.id', 'in', newest).orderBy('created_at', 'desc').orderBy('id', 'desc').execute();
}

/** Platforms of a release, each with an architecture. */
const targets = sql<string[]>`array(
  select distinct platform || ' ' || arch from release_artifact where release_id = release.id)`;

export function selectPublished(db: Db, applicationId: string, channel: string) {
  const found = db.selectFrom('release').select(['id', 'version', 'rollout_percent', targets.as('targets')]);
  const published = found.where('application_id', '=', applicationId).where('status', '=', 'published');
  return published.where('channel', '=', channel).execute();
}

/** Some releases, in no order. */
export function selectReleasesByIds(db: Db, ids: readonly string[]): Promise<ReleaseWithArtifacts[]> {
  return releases(db).where(sql<boolean>`release.id = any(${ids}::uuid[])`).execute();
}

/** A release of one of the account's applications, with the signing keys of that. */
export function selectRelease(db: Db, accountId: string, releaseId: string) {
  return releases(db)
    .innerJoin('application', 'application.id', 'release.application_id')
    .select('signing_keys')
    .where('release.id', '=', releaseId)
    .where('account_id', '=', accountId)
    .executeTakeFirst();
}

export function selectReleaseOf(db: Db, applicationId: string, releaseId: string): Promise<ReleaseWithArtifacts | undefined> {
  return releases(db).where('id', '=', releaseId).where('application_id', '=', applicationId).executeTakeFirst();
}

export async function countReleases(db: Db, applicationId: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from release where application_id = ${applicationId}`.execute(db);
  return rows[0]?.count ?? 0;
}

export async function insertRelease(tx: Db, row: Insertable<ReleaseTable>): Promise<void> {
  await tx.insertInto('release').values(row).execute();
}

export async function updateRelease(tx: Db, id: string, changes: Updateable<ReleaseTable>): Promise<void> {
  if (Object.keys(changes).length > 0) await tx.updateTable('release').set(changes).where('id', '=', id).execute();
}

export async function deleteRelease(tx: Db, id: string): Promise<void> {
  await tx.deleteFrom('release').where('id', '=', id).execute();
}

export async function replaceArtifacts(
  tx: Db,
  releaseId: string,
  rows: ReadonlyArray<Omit<Insertable<ReleaseArtifactTable>, 'release_id' | 'position'>>,
): Promise<void> {
  await tx.deleteFrom('release_artifact').where('release_id', '=', releaseId).execute();
  if (rows.length === 0) return;
  const values = rows.map((row, position) => ({ ...row, release_id: releaseId, position }));
  await tx.insertInto('release_artifact').values(values).execute();
}

/** Writes what updaters are offered of a channel. */
export async function writeFeed(tx: Db, applicationId: string, channel: string, json: string): Promise<void> {
  await tx
    .insertInto('release_feed')
    .values({ application_id: applicationId, channel, releases: json })
    .onConflict((conflict) => conflict.columns(['application_id', 'channel']).doUpdateSet({ releases: json }))
    .execute();
}

/** True if a release of the application, drafts included, has the file: usually none. */
export async function hasArtifactOf(db: Db, applicationId: string, fileId: string): Promise<boolean> {
  const found = await db
    .selectFrom('release_artifact')
    .innerJoin('release', 'release.id', 'release_artifact.release_id')
    .select('release.id')
    .where('file_id', '=', fileId)
    .where('application_id', '=', applicationId)
    .limit(1)
    .executeTakeFirst();
  return found !== undefined;
}

const ofFile = (fileId: string) => sql<boolean>`id in (select release_id from release_artifact where file_id = ${fileId})`;

export async function isFilePublished(tx: Db, applicationId: string, fileId: string): Promise<boolean> {
  const found = tx.selectFrom('release').select('id').where('application_id', '=', applicationId);
  return (await found.where('status', '=', 'published').where(ofFile(fileId)).limit(1).executeTakeFirst()) !== undefined;
}

export async function deleteArtifactsOfFile(tx: Db, applicationId: string, fileId: string): Promise<void> {
  await sql`delete from release_artifact using release
    where file_id = ${fileId} and release.id = release_id and application_id = ${applicationId}`.execute(tx);
}

/**
 * Gives the artifacts of a file another revision, so that no publication uses what it read before.
 */
export async function renewRevisions(tx: Db, applicationId: string, fileId: string): Promise<void> {
  await sql`update release_artifact set file_id = file_id from release
    where file_id = ${fileId} and release.id = release_id and application_id = ${applicationId}`.execute(tx);
}

/** The account of an application whose channel has a published release with a file of that name. */
export async function selectOwnerOfPublished(
  db: Db,
  file: Record<'applicationId' | 'channel' | 'fileId' | 'name', string>,
): Promise<string | undefined> {
  const { rows } = await sql<{ account_id: string }>`
    select account_id from application where id = ${file.applicationId} and exists (
      select from release join release_artifact on release_id = release.id
      where file_id = ${file.fileId} and name = ${file.name} and channel = ${file.channel}
        and application_id = ${file.applicationId} and status = 'published')`.execute(db);
  return rows[0]?.account_id;
}

export async function lockApplicationRow(tx: Db, applicationId: string): Promise<void> {
  await sql`select from application where id = ${applicationId} for update`.execute(tx);
}

export interface ReleaseSettings {
  readonly public_updates: boolean;
  readonly signing_keys: string[];
}

export async function selectReleaseSettings(
  db: Db,
  accountId: string,
  applicationId: string,
): Promise<ReleaseSettings | undefined> {
  const found = db.selectFrom('application').select(['public_updates', 'signing_keys']).where('id', '=', applicationId);
  return found.where('account_id', '=', accountId).executeTakeFirst();
}

export async function selectSigningKeys(db: Db, applicationId: string): Promise<readonly string[]> {
  const found = db.selectFrom('application').select('signing_keys').where('id', '=', applicationId);
  return (await found.executeTakeFirst())?.signing_keys ?? [];
}
