import { sql } from 'kysely';
import type { ApiKeyRef } from '../api-key/api-key.store.ts';
import type { Db } from '../db/schema.ts';

export interface RequestCount {
  readonly apiKeyId: string;
  readonly requests: number;
}

/** Adds requests to those of a day, in one order, so that concurrent calls do not deadlock. */
export async function addRequests(db: Db, day: string, counts: readonly RequestCount[]): Promise<void> {
  await sql`
    with counted as (
      select id, sum(requests) as requests
      from unnest(${counts.map(({ apiKeyId }) => apiKeyId)}::uuid[], ${counts.map(({ requests }) => requests)}::bigint[])
        as given (id, requests)
      group by id
    )
    insert into daily_requests as stored (api_key_id, day, requests)
    select api_key.id, ${day}::date, counted.requests from counted join api_key using (id)
    order by api_key.id for key share of api_key
    on conflict (api_key_id, day) do update set requests = stored.requests + excluded.requests`.execute(db);
}

export interface DailyRequestsRow {
  /** `YYYY-MM-DD`. */
  readonly date: string;
  readonly requests: string;
}

/** The requests of this many days up to one, in order; none if the account has no such key. */
export async function selectDailyRequests(
  db: Db,
  { accountId, apiKeyId }: ApiKeyRef,
  lastDay: string,
  days: number,
): Promise<DailyRequestsRow[]> {
  const { rows } = await sql<DailyRequestsRow>`
    select to_char(shown.day, 'YYYY-MM-DD') as date, coalesce(requests, 0) as requests
    from api_key cross join (
      select ${lastDay}::date - i as day from generate_series(0, ${days}::int - 1) i
    ) shown
    left join daily_requests on api_key_id = api_key.id and daily_requests.day = shown.day
    where api_key.id = ${apiKeyId} and account_id = ${accountId} order by shown.day`.execute(db);
  return rows;
}

/** Deletes rows of days before one that no other process deletes; returns how many. */
export async function deleteRequestsBefore(db: Db, day: string, limit: number): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    delete from daily_requests where ctid = any(array(
      select ctid from daily_requests where day < ${day}::date order by day limit ${limit} for update skip locked
    ))`.execute(db);
  return Number(numAffectedRows);
}
