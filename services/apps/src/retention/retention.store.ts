import { sql } from 'kysely';
import type { Db } from '../db/schema.ts';

/** Any free number: one process deletes at a time, so that no reader sees a gap. */
const RETENTION_LOCK = 6_110_240;

/** Bounds of one statement, and the application after which it begins. */
export interface Step {
  readonly after: string;
  readonly applicationsMax: number;
  readonly eventsMax: number;
}

/**
 * Deletes events that are not retained, of the next applications of the log, unless another process
 * does. Of the events for live clients these are always the oldest of an application: what is left
 * has no gaps, even while an event waits for delivery or the clocks of processes differ. The
 * statement visits the ends of each application in the index, not the events in between.
 *
 * @param retained times after which events and deletions are retained, and the most events of an
 *   application
 * @returns the application after which the next step begins; undefined at the end of the log
 */
export async function deleteExpiredEvents(
  db: Db,
  retained: { readonly eventsAfter: Date; readonly deletionsAfter: Date; readonly count: number },
  { after, applicationsMax, eventsMax }: Step,
): Promise<string | undefined> {
  const { rows } = await sql<{ visited: number; last: string | null; deleted: number }>`
    with recursive application (id, n) as (
      select first.application_id, 1 from (select pg_try_advisory_xact_lock(${RETENTION_LOCK}::bigint) as is_held) lock
        cross join lateral (
          select application_id from application_event where application_id > ${after}::uuid order by application_id limit 1
        ) first where lock.is_held
      union all
      select next.application_id, n + 1 from application cross join lateral (
        select application_id from application_event where application_id > application.id order by application_id limit 1
      ) next where n < ${applicationsMax}::int
    ), deleted as (
      delete from application_event where id = any(array(
        select expired.id from application
        left join lateral (
          select sequence from application_event e
            where e.application_id = application.id and sequence is not null order by sequence desc limit 1
        ) newest on true
        left join lateral (
          select sequence from application_event e
            where e.application_id = application.id and sequence > newest.sequence - ${retained.count}::bigint
              and created_at > case type when 'deleted' then ${retained.deletionsAfter}::timestamptz
                else ${retained.eventsAfter}::timestamptz end
            order by sequence limit 1
        ) young on true
        cross join lateral (
          (select id from (
            select id, bool_and(delivered_at is not null) over (order by sequence) as is_delivered from (
              select id, sequence, delivered_at from application_event e
                where e.application_id = application.id and sequence < coalesce(young.sequence, newest.sequence + 1)
                order by sequence limit ${eventsMax}::int
            ) oldest
          ) delivered where is_delivered)
          union all
          (select id from application_event e
            where e.application_id = application.id and sequence is null
              and created_at <= ${retained.eventsAfter}::timestamptz and delivered_at is not null
            limit ${eventsMax}::int)
        ) expired
        limit ${eventsMax}::int
      )) returning id
    )
    select (select count(*) from application)::int as visited, (select id from application order by n desc limit 1) as last,
      (select count(*) from deleted)::int as deleted`.execute(db);
  const { visited = 0, last = null, deleted = 0 } = rows[0] ?? {};
  // These applications may have more.
  if (deleted === eventsMax) return after;
  return visited < applicationsMax ? undefined : (last ?? undefined);
}
