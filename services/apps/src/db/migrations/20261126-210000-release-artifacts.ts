import { type Kysely, sql } from 'kysely';

/** Moves the artifacts of a release into its row, as they are written and read as one list. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table release add column artifacts jsonb not null default '[]'`.execute(db);
  await sql`
    update release set artifacts = moved.artifacts from (
      select release_id, jsonb_agg(jsonb_build_object('fileId', file_id, 'name', name, 'platform', platform, 'arch', arch,
        'kind', kind, 'signature', signature, 'byteSize', byte_size, 'checksum', checksum, 'sha512', sha512) order by position
      ) as artifacts from release_artifact group by release_id
    ) as moved where release_id = id`.execute(db);
  await sql`
    update release_feed set releases = (
      select coalesce(jsonb_agg(shown || jsonb_build_object('artifacts', artifacts) order by position), '[]')
      from jsonb_array_elements(releases) with ordinality as feed (shown, position)
      join release on release.id = (shown ->> 'id')::uuid
    )`.execute(db);
  await sql`alter table release alter column artifacts drop default`.execute(db);
  await sql`create index release_of_file on release using gin (artifacts jsonb_path_ops)`.execute(db);
  await sql`drop table release_artifact`.execute(db);
}
