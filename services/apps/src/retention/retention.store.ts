import { type Kysely, sql } from 'kysely';
import type { AppsDatabase } from '../db/schema.ts';

/** Any free number: one process deletes at a time, so that no reader sees a gap. */
const RETENTION_LOCK = 6_110_240;

/**
 * Deletes events that are not retained, up to `limit`, unless another process does. Of the events
 * for live clients these are always the oldest of an application: what is left has no gaps, even
 * while an event waits for delivery or the clocks of processes differ. The statement visits the
 * ends of each application in the index, not the events in between.
 *
 * @param retained events younger than these times are, of the newest `count` of an application
 * @returns how many were deleted
 */
export async function deleteExpiredEvents(
  db: Kysely<AppsDatabase>,
  retained: { readonly eventsAfter: Date; readonly deletionsAfter: Date; readonly count: number },
  limit: number,
): Promise<number> {
  const { numAffectedRows } = await sql`
    with recursive application (id) as (
      select first.application_id from (select pg_try_advisory_xact_lock(${RETENTION_LOCK}::bigint) as is_held) lock
        cross join lateral (select application_id from application_event order by application_id limit 1) first where lock.is_held
      union all
      select next.application_id from application cross join lateral (
        select application_id from application_event where application_id > application.id order by application_id limit 1
      ) next
    ), undelivered as materialized (
      select application_id, min(sequence) as first from application_event where delivered_at is null group by application_id
    )
    delete from application_event where id = any(array(
      select expired.id from application
      left join undelivered on undelivered.application_id = application.id
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
        (select id from application_event e
          where e.application_id = application.id
            and sequence < least(coalesce(young.sequence, newest.sequence + 1), undelivered.first)
          order by sequence limit ${limit}::int)
        union all
        (select id from application_event e
          where e.application_id = application.id and sequence is null
            and created_at <= ${retained.eventsAfter}::timestamptz and delivered_at is not null
          limit ${limit}::int)
      ) expired
      limit ${limit}::int
    ))`.execute(db);
  return Number(numAffectedRows ?? 0n);
}
