import { assignmentsOf, valuesOf } from '@latchkey/kit/database/columns';
import type { ReleaseArtifact } from '@latchkey/proto/latchkey/apps/v1/release_pb';
import { sql } from 'kysely';
import type { ApplicationRow } from '../application/application.store.ts';
import type { Db } from '../db/schema.ts';

/** A file of a release; its size and digests are set by the publication. */
type StoredArtifact = Pick<ReleaseArtifact, 'fileId' | 'name' | 'platform' | 'arch' | 'kind' | 'signature'> &
  Partial<Pick<ReleaseArtifact, 'checksum' | 'sha512'>> & { readonly byteSize?: number };

export interface ReleaseRow {
  readonly id: string;
  readonly application_id: string;
  readonly version: string;
  readonly channel: string;
  readonly notes: string;
  readonly status: 'draft' | 'published' | 'yanked';
  readonly rollout_percent: number;
  readonly artifacts: readonly StoredArtifact[];
  readonly published_at: Date | null;
  readonly created_at: Date;
  /** Id of the transaction that wrote the row. */
  readonly revision: string;
}

/** Columns to write; `artifacts` is JSON. Those without a value stay. */
export type ReleaseColumns = {
  readonly [C in keyof ReleaseRow]?: (C extends 'artifacts' ? string : ReleaseRow[C]) | undefined;
};

const COLUMNS = sql`release.*, release.xmin::text as revision`;

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

/** Published releases of a channel, with their platforms, each with an architecture. */
export async function selectPublished(db: Db, applicationId: string, channel: string) {
  const { rows } = await sql<Pick<ReleaseRow, 'id' | 'version' | 'rollout_percent'> & { readonly targets: readonly string[] }>`
    select id, version, rollout_percent, array(
      select distinct (artifact ->> 'platform') || ' ' || (artifact ->> 'arch') from jsonb_array_elements(artifacts) artifact
    ) as targets from release
    where application_id = ${applicationId} and status = 'published' and channel = ${channel}`.execute(db);
  return rows;
}

/** Some releases, in no order. */
export async function selectReleasesByIds(db: Db, ids: readonly string[]): Promise<ReleaseRow[]> {
  return (await sql<ReleaseRow>`select ${COLUMNS} from release where id = any(${ids}::uuid[])`.execute(db)).rows;
}

/** A release of one of the account's applications, with the signing keys of that. */
export async function selectRelease(db: Db, accountId: string, releaseId: string) {
  const { rows } = await sql<ReleaseRow & { readonly signing_keys: string[] }>`
    select ${COLUMNS}, signing_keys from release join application on application.id = application_id
    where release.id = ${releaseId} and account_id = ${accountId}`.execute(db);
  return rows[0];
}

export async function countReleases(tx: Db, applicationId: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from release where application_id = ${applicationId}`.execute(tx);
  return rows[0]?.count ?? 0;
}

export async function insertRelease(
  tx: Db,
  row: Omit<ReleaseRow, 'status' | 'artifacts' | 'revision'> & { readonly artifacts: string },
): Promise<ReleaseRow> {
  const { rows } = await sql<ReleaseRow>`insert into release ${valuesOf(row)} returning ${COLUMNS}`.execute(tx);
  return rows[0] as ReleaseRow;
}

export async function updateRelease(tx: Db, id: string, changes: ReleaseColumns): Promise<ReleaseRow> {
  // With the id, the statement is valid without changes too.
  const { rows } = await sql<ReleaseRow>`
    update release set ${assignmentsOf({ id, ...changes })} where id = ${id} returning ${COLUMNS}`.execute(tx);
  return rows[0] as ReleaseRow;
}

export async function deleteRelease(tx: Db, id: string): Promise<void> {
  await sql`delete from release where id = ${id}`.execute(tx);
}

/** Writes what updaters are offered of a channel. */
export async function writeFeed(tx: Db, applicationId: string, channel: string, json: string): Promise<void> {
  await sql`
    insert into release_feed (application_id, channel, releases) values (${applicationId}, ${channel}, ${json})
    on conflict (application_id, channel) do update set releases = excluded.releases`.execute(tx);
}

/** Releases of an application with an artifact that has these properties. */
const withArtifact = (applicationId: string, artifact: { readonly fileId: string; readonly name?: string }) =>
  sql<boolean>`application_id = ${applicationId} and artifacts @> ${JSON.stringify([artifact])}::jsonb`;

/** States of the releases that have a file: usually none. */
export async function selectStatesOfFile(db: Db, applicationId: string, fileId: string): Promise<Array<ReleaseRow['status']>> {
  const { rows } = await sql<Pick<ReleaseRow, 'status'>>`
    select distinct status from release where ${withArtifact(applicationId, { fileId })}`.execute(db);
  return rows.map(({ status }) => status);
}

export async function deleteArtifactsOfFile(tx: Db, applicationId: string, fileId: string): Promise<void> {
  await sql`
    update release
    set artifacts = jsonb_path_query_array(artifacts, '$[*] ? (@.fileId != $id)', jsonb_build_object('id', ${fileId}::text))
    where ${withArtifact(applicationId, { fileId })}`.execute(tx);
}

/** Gives the releases of a file another revision: no publication uses what it read before. */
export async function renewRevisions(tx: Db, applicationId: string, fileId: string): Promise<void> {
  await sql`update release set artifacts = artifacts where ${withArtifact(applicationId, { fileId })}`.execute(tx);
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
  const { rows } = await sql<Pick<ApplicationRow, 'public_updates' | 'signing_keys'>>`
    select public_updates, signing_keys from application where id = ${applicationId} and account_id = ${accountId}`.execute(db);
  return rows[0];
}
