import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table release (
      id uuid primary key,
      application_id uuid not null references application on delete cascade,
      version text not null,
      channel text not null,
      notes text not null,
      status text not null default 'draft' check (status in ('draft', 'published', 'yanked')),
      rollout_percent int not null check (rollout_percent between 0 and 100),
      published_at timestamptz(3),
      created_at timestamptz(3) not null,
      constraint release_version unique (application_id, channel, version)
    )`.execute(db);
  await sql`
    create table release_artifact (
      release_id uuid not null references release on delete cascade,
      position int not null,
      file_id uuid not null,
      name text not null,
      platform text not null,
      arch text not null,
      kind text not null,
      signature text not null,
      byte_size bigint not null default 0,
      checksum text not null default '',
      sha512 text not null default '',
      primary key (release_id, platform, arch, kind)
    )`.execute(db);
  await sql`create index release_artifact_of_file on release_artifact (file_id)`.execute(db);
  await sql`
    create table release_feed (
      application_id uuid not null references application on delete cascade,
      channel text not null,
      releases jsonb not null,
      primary key (application_id, channel)
    )`.execute(db);
}
