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
      artifacts jsonb not null,
      published_at timestamptz(3),
      created_at timestamptz(3) not null,
      constraint release_version unique (application_id, channel, version)
    )`.execute(db);
  await sql`create index release_of_file on release using gin (artifacts jsonb_path_ops)`.execute(db);
  await sql`
    create table release_feed (
      application_id uuid not null references application on delete cascade,
      channel text not null,
      releases jsonb not null,
      primary key (application_id, channel)
    )`.execute(db);
}
