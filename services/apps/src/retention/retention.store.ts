import { type Kysely, sql } from 'kysely';
import type { AppsDatabase } from '../db/schema.ts';

/** Held by the transaction that trims, so that one process does at a time; any number will do that nobody else uses. */
const TRIM_LOCK = 6_110_240;

/** The oldest events of an application, from one `sequence` to before another. */
export interface Span {
  readonly applicationId: string;
  readonly first: number;
  readonly before: number;
}

/** What of the log is kept; what is as old as a time, or older, is not. */
export interface Kept {
  readonly eventsAfter: Date;
  readonly deletionsAfter: Date;
  /** Events of each application. */
  readonly count: number;
}

/** Takes the lock of those who trim until the transaction ends. False where another has it. */
export async function tryLockTrimming(tx: Kysely<AppsDatabase>): Promise<boolean> {
  const { rows } = await sql<{ locked: boolean }>`select pg_try_advisory_xact_lock(${TRIM_LOCK}::bigint) as locked`.execute(tx);
  return rows[0]?.locked ?? false;
}

/** The next applications that the log has events of, by id. From each to the next is one look into the index, however many events are in between. */
export async function selectLoggedApplications(tx: Kysely<AppsDatabase>, after: string, limit: number): Promise<string[]> {
  const { rows } = await sql<{ application_id: string }>`
    with recursive logged (application_id, place) as (
      (select application_id, 1 from application_event
        where application_id > ${after}::uuid order by application_id limit 1)
      union all
      select next.application_id, place + 1 from logged cross join lateral (
        select application_id from application_event e
          where e.application_id > logged.application_id order by e.application_id limit 1
      ) next where place < ${limit}
    )
    select application_id from logged order by place`.execute(tx);
  return rows.map((row) => row.application_id);
}

/**
 * The events that live clients need no longer, for those of the applications that have any. They are always the oldest ones: what is left has no
 * gaps, also where an event is still on its way or the clocks of processes differ.
 */
export async function selectSpans(tx: Kysely<AppsDatabase>, applicationIds: readonly string[], kept: Kept): Promise<Span[]> {
  const { rows } = await sql<{ application_id: string; first: string; before: string }>`
    with undelivered as materialized (
      select application_id, min(sequence) as first from application_event
        where delivered_at is null and application_id = any(${applicationIds}::uuid[]) group by application_id
    )
    select application.id as application_id, oldest.sequence as first, kept.first as before
    from unnest(${applicationIds}::uuid[]) application (id)
    cross join lateral (
      select sequence from application_event e
        where e.application_id = application.id and sequence is not null order by sequence limit 1
    ) oldest
    cross join lateral (
      select sequence from application_event e
        where e.application_id = application.id and sequence is not null order by sequence desc limit 1
    ) newest
    left join lateral (
      select sequence from application_event e
        where e.application_id = application.id and sequence > newest.sequence - ${kept.count}::bigint
          and created_at > case type when 'deleted' then ${kept.deletionsAfter}::timestamptz else ${kept.eventsAfter}::timestamptz end
        order by sequence limit 1
    ) young on true
    left join undelivered on undelivered.application_id = application.id
    cross join lateral (select least(coalesce(young.sequence, newest.sequence + 1), undelivered.first) as first) kept
    where oldest.sequence < kept.first`.execute(tx);
  return rows.map((row) => ({ applicationId: row.application_id, first: Number(row.first), before: Number(row.before) }));
}

/**
 * Removes spans of events, up to `limit`. Each span is looked up by itself: joined, all of the log would be read where spans are many, since
 * nothing tells the planner how short they are.
 */
export async function deleteSpans(tx: Kysely<AppsDatabase>, spans: readonly Span[], limit: number): Promise<void> {
  await sql`
    delete from application_event where id = any(array(
      select trimmed.id
      from unnest(${spans.map(({ applicationId }) => applicationId)}::uuid[], ${spans.map(({ first }) => first)}::bigint[],
        ${spans.map(({ before }) => before)}::bigint[]) span (application_id, first, before)
      cross join lateral (
        select e.id from application_event e
          where e.application_id = span.application_id and sequence >= span.first and sequence < span.before
          order by sequence limit ${limit}::int
      ) trimmed limit ${limit}::int
    ))`.execute(tx);
}

/** Removes events of the applications that have no sequence, up to `limit`, and returns how many it were. */
export async function deleteUnsequenced(
  tx: Kysely<AppsDatabase>,
  applicationIds: readonly string[],
  kept: Kept,
  limit: number,
): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from application_event where id = any(array(
      select old.id from unnest(${applicationIds}::uuid[]) application (id) cross join lateral (
        select e.id from application_event e
          where e.application_id = application.id and sequence is null
            and created_at <= ${kept.eventsAfter}::timestamptz and delivered_at is not null
          limit ${limit}::int
      ) old limit ${limit}::int
    ))`.execute(tx);
  return Number(numAffectedRows ?? 0n);
}
