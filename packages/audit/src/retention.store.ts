import type pg from 'pg';

const DELETE_OLD = {
  name: 'delete-old-audit-entries',
  text: `delete from audit_entry where id = any(array(
    select id from audit_entry where at at time zone 'UTC' < now() at time zone 'UTC' - make_interval(days => $1)
      order by at at time zone 'UTC' limit $2 for update skip locked
  ))`,
};

/** Deletes entries older than a number of days that no other process deletes; returns how many. */
export async function deleteOldEntries(pool: pg.Pool, days: number, limit: number): Promise<number> {
  const { rowCount } = await pool.query({ ...DELETE_OLD, values: [days, limit] });
  return rowCount ?? 0;
}

export interface Surplus {
  readonly account_id: string;
  readonly action: string;
  readonly day: Date;
}

/**
 * Accounts and actions with entries in a minute of the last hour, and more than a day allows. One
 * statement covers a minute: with all entries of a busy hour it would time out.
 */
const SELECT_SURPLUS = {
  name: 'select-audit-surplus',
  text: `select written.account_id, written.action, days.day from (
      select account_id, action from audit_entry
        where at at time zone 'UTC' > now() at time zone 'UTC' - make_interval(mins => $3)
          and at at time zone 'UTC' <= now() at time zone 'UTC' - make_interval(mins => $3 - 1)
          and action <> 'audit_log.entries_left_out'
        group by account_id, action
    ) written
    cross join (
      select distinct date_trunc('day', time at time zone 'UTC') at time zone 'UTC' as day
        from unnest(array[now(), now() - interval '1 hour']) time
    ) days
    where exists (
      select from audit_entry
        where account_id = written.account_id and action = written.action
          and (action, at) >= (written.action, days.day) and (action, at) < (written.action, days.day + interval '24 hours')
        order by at, id offset $1 limit 1
    )
    limit $2`,
};

/** @param minute 1 for the last one, 60 for the first of the hour */
export async function selectSurplus(pool: pg.Pool, minute: number, entriesPerDay: number, limit: number): Promise<Surplus[]> {
  const { rows } = await pool.query<Surplus>({ ...SELECT_SURPLUS, values: [entriesPerDay, limit, minute] });
  return rows;
}

const CREDENTIALS_MAX = 20;

/**
 * One statement, so that nothing is deleted without being counted. The id of the counting entry
 * derives from account, action and day: concurrent processes add to the same entry.
 */
const REPLACE_SURPLUS = {
  name: 'replace-audit-surplus',
  text: `with surplus as (
      select id from audit_entry
        where account_id = $1 and action = $2
          and (action, at) >= ($2, $3::timestamptz) and (action, at) < ($2, $3::timestamptz + interval '24 hours')
        order by at, id offset $4 limit $5
    ), removed as (
      delete from audit_entry where id = any(array(select id from surplus)) returning at, credential_id
    ), counted as (
      insert into audit_entry as existing (id, account_id, at, action, actor, subject, subject_id, changes)
        select md5(concat_ws('/', $1, $2, $3::timestamptz at time zone 'UTC'))::uuid, $1, min(at), 'audit_log.entries_left_out',
            'service', 'account', $1, jsonb_build_object(
              'action', $2::text,
              'count', count(*),
              'until', to_char(max(at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
              'credentialIds', coalesce(to_jsonb((array_agg(distinct credential_id)
                filter (where credential_id is not null))[1:${CREDENTIALS_MAX}]), '[]')
            )
          from removed having count(*) > 0
        on conflict (id) do update set changes = excluded.changes || jsonb_build_object(
          'count', (existing.changes->>'count')::int + (excluded.changes->>'count')::int,
          'until', greatest(existing.changes->>'until', excluded.changes->>'until'),
          'credentialIds', (
            select coalesce(jsonb_agg(id), '[]') from (
              select distinct jsonb_array_elements((existing.changes->'credentialIds') || (excluded.changes->'credentialIds')) as id
                limit ${CREDENTIALS_MAX}
            ) ids
          )
        )
    )
    select count(*)::int as count from removed`,
};

/** Replaces the surplus entries of a day by one that counts them; returns their number. */
export async function replaceSurplus(
  pool: pg.Pool,
  { account_id, action, day }: Surplus,
  entriesPerDay: number,
  limit: number,
): Promise<number> {
  const values = [account_id, action, day, entriesPerDay, limit];
  const { rows } = await pool.query<{ count: number }>({ ...REPLACE_SURPLUS, values });
  return rows[0]?.count ?? 0;
}
