import { type Insertable, type Selectable, sql, type Updateable } from 'kysely';
import type { Db, ReleaseTable } from '../db/schema.ts';

export type ReleaseRow = Selectable<ReleaseTable> & {
  /** Id of the transaction that wrote the row. */
  readonly revision: string;
};

export type ReleaseColumns = { readonly [C in keyof Updateable<ReleaseTable>]: Updateable<ReleaseTable>[C] | undefined };

const revision = sql<string>`release.xmin::text`.as('revision');

const releases = (db: Db) => db.selectFrom('release').selectAll('release').select(revision);

/** Releases of an application, newest first: at most `limit`, of at most `bytesMax` in all. */
export async function selectReleases(
  db: Db,
  applicationId: string,
  { limit, bytesMax }: { readonly limit: number; readonly bytesMax: number },
): Promise<ReleaseRow[]> {
  const { rows } = await sql<ReleaseRow>`
    select * from (
      select release.*, xmin::text as revision,
        sum(octet_length(notes) + octet_length(artifacts::text)) over (order by created_at desc, id desc) as bytes
      from release where application_id = ${applicationId} order by created_at desc, id desc limit ${limit}
    ) as newest where bytes <= ${bytesMax} order by created_at desc, id desc`.execute(db);
  return rows;
}

/** Platforms of a release, each with an architecture. */
const targets = sql<string[]>`array(
  select distinct (artifact ->> 'platform') || ' ' || (artifact ->> 'arch') from jsonb_array_elements(artifacts) artifact)`;

export function selectPublished(db: Db, applicationId: string, channel: string) {
  const found = db.selectFrom('release').select(['id', 'version', 'rollout_percent', targets.as('targets')]);
  const published = found.where('application_id', '=', applicationId).where('status', '=', 'published');
  return published.where('channel', '=', channel).execute();
}

/** Some releases, in no order. */
export function selectReleasesByIds(db: Db, ids: readonly string[]): Promise<ReleaseRow[]> {
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

export function selectReleaseOf(tx: Db, applicationId: string, releaseId: string): Promise<ReleaseRow | undefined> {
  return releases(tx).where('id', '=', releaseId).where('application_id', '=', applicationId).executeTakeFirst();
}

export async function countReleases(tx: Db, applicationId: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from release where application_id = ${applicationId}`.execute(tx);
  return rows[0]?.count ?? 0;
}

export function insertRelease(tx: Db, row: Insertable<ReleaseTable>): Promise<ReleaseRow> {
  return tx.insertInto('release').values(row).returningAll().returning(revision).executeTakeFirstOrThrow();
}

export function updateRelease(tx: Db, id: string, changes: ReleaseColumns): Promise<ReleaseRow> {
  // Undefined columns stay. With the id, the statement is valid without changes too.
  const update = tx.updateTable('release').set({ id, ...changes } as Updateable<ReleaseTable>);
  return update.where('id', '=', id).returningAll().returning(revision).executeTakeFirstOrThrow();
}

export async function deleteRelease(tx: Db, id: string): Promise<void> {
  await tx.deleteFrom('release').where('id', '=', id).execute();
}

/** Writes what updaters are offered of a channel. */
export async function writeFeed(tx: Db, applicationId: string, channel: string, json: string): Promise<void> {
  await tx
    .insertInto('release_feed')
    .values({ application_id: applicationId, channel, releases: json })
    .onConflict((conflict) => conflict.columns(['application_id', 'channel']).doUpdateSet({ releases: json }))
    .execute();
}

/** Releases of an application with an artifact that has these properties. */
const withArtifact = (applicationId: string, artifact: { readonly fileId: string; readonly name?: string }) =>
  sql<boolean>`application_id = ${applicationId} and artifacts @> ${JSON.stringify([artifact])}::jsonb`;

/** States of the releases that have a file: usually none. */
export async function selectStatesOfFile(db: Db, applicationId: string, fileId: string): Promise<Array<ReleaseRow['status']>> {
  const found = db.selectFrom('release').select('status').distinct().where(withArtifact(applicationId, { fileId }));
  return (await found.execute()).map(({ status }) => status);
}

export async function deleteArtifactsOfFile(tx: Db, applicationId: string, fileId: string): Promise<void> {
  const others = sql<string>`jsonb_path_query_array(artifacts, '$[*] ? (@.fileId != $id)', jsonb_build_object('id', ${fileId}::text))`;
  await tx.updateTable('release').set({ artifacts: others }).where(withArtifact(applicationId, { fileId })).execute();
}

/** Gives the releases of a file another revision: no publication uses what it read before. */
export async function renewRevisions(tx: Db, applicationId: string, fileId: string): Promise<void> {
  const same = sql<string>`artifacts`;
  await tx.updateTable('release').set({ artifacts: same }).where(withArtifact(applicationId, { fileId })).execute();
}

/** The account of an application whose channel has a published release with a file of that name. */
export async function selectOwnerOfPublished(
  db: Db,
  { applicationId, channel, fileId, name }: Record<'applicationId' | 'channel' | 'fileId' | 'name', string>,
): Promise<string | undefined> {
  const hasFile = withArtifact(applicationId, { fileId, name });
  const { rows } = await sql<{ account_id: string }>`
    select account_id from application where id = ${applicationId} and exists (
      select from release where status = 'published' and channel = ${channel} and ${hasFile})`.execute(db);
  return rows[0]?.account_id;
}

export async function lockApplicationRow(tx: Db, applicationId: string): Promise<void> {
  await sql`select from application where id = ${applicationId} for update`.execute(tx);
}

export async function selectReleaseSettings(db: Db, accountId: string, applicationId: string) {
  const found = db.selectFrom('application').select(['public_updates', 'signing_keys']).where('id', '=', applicationId);
  return found.where('account_id', '=', accountId).executeTakeFirst();
}
