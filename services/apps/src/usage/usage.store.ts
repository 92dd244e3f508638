import { type Kysely, sql } from 'kysely';
import type { ApplicationRef } from '../application/application-ref.ts';
import type { AppsDatabase } from '../db/schema.ts';

/** Counts of an application since the last ones, and its clients at this moment. */
export interface UsageCounts {
  readonly applicationId: string;
  readonly events: number;
  readonly downloads: number;
  readonly uploads: number;
  readonly clients: number;
}

/**
 * Adds to the usage of a day; `clients_max` becomes the larger. Deleted applications are left out.
 * The rows are locked in one order, so that concurrent calls do not deadlock. A row is written only
 * if it changes.
 */
export async function addUsage(db: Kysely<AppsDatabase>, day: string, counts: readonly UsageCounts[]): Promise<void> {
  const column = (name: keyof UsageCounts) => counts.map((row) => row[name]);
  await sql`
    with counted as (
      select id, sum(events) as events, sum(downloads) as downloads, sum(uploads) as uploads, max(clients) as clients
      from unnest(${column('applicationId')}::uuid[], ${column('events')}::bigint[], ${column('downloads')}::bigint[],
        ${column('uploads')}::bigint[], ${column('clients')}::bigint[]) as given (id, events, downloads, uploads, clients)
      group by id
    )
    insert into daily_usage as stored (application_id, day, events, downloads, uploads, clients_max)
    select application.id, ${day}::date, counted.events, counted.downloads, counted.uploads, counted.clients
    from counted join application using (id)
    order by application.id for key share of application
    on conflict (application_id, day) do update
      set events = stored.events + excluded.events, downloads = stored.downloads + excluded.downloads,
        uploads = stored.uploads + excluded.uploads, clients_max = greatest(stored.clients_max, excluded.clients_max)
      where excluded.events + excluded.downloads + excluded.uploads > 0 or excluded.clients_max > stored.clients_max`.execute(db);
}

export interface DailyUsageRow {
  /** `YYYY-MM-DD`. */
  readonly date: string;
  readonly events: string;
  readonly downloads: string;
  readonly uploads: string;
  readonly clients_max: string;
}

/** The usage of this many days up to one, in order; none if the account has no such application. */
export async function selectDailyUsage(
  db: Kysely<AppsDatabase>,
  { accountId, applicationId }: ApplicationRef,
  lastDay: string,
  days: number,
): Promise<DailyUsageRow[]> {
  const { rows } = await sql<DailyUsageRow>`
    select to_char(shown.day, 'YYYY-MM-DD') as date, coalesce(events, 0) as events, coalesce(downloads, 0) as downloads,
      coalesce(uploads, 0) as uploads, coalesce(clients_max, 0) as clients_max
    from application cross join (
      select ${lastDay}::date - i as day from generate_series(0, ${days}::int - 1) i
    ) shown
    left join daily_usage on application_id = application.id and daily_usage.day = shown.day
    where application.id = ${applicationId} and account_id = ${accountId} order by shown.day`.execute(db);
  return rows;
}

/** Deletes rows of days before one that no other process deletes; returns how many. */
export async function deleteUsageBefore(db: Kysely<AppsDatabase>, day: string, limit: number): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    delete from daily_usage where ctid = any(array(
      select ctid from daily_usage where day < ${day}::date order by day limit ${limit} for update skip locked
    ))`.execute(db);
  return Number(numAffectedRows);
}
