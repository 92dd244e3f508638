import type pg from 'pg';

/** An account's entries of an action and a day, where they are too many. */
export interface Crowd {
  readonly account_id: string;
  readonly action: string;
  /** Where the day begins. */
  readonly day: Date;
}

/** Most that are found at once; others are found the next time. */
const CROWDS_MAX = 1_000;

/**
 * Only what was written to in the last hour can have come to be too much since the last look. As pairs, action and time bound the index of actions alone, and
 * what is read of it ends where there are too many.
 */
const SELECT_CROWDS = {
  name: 'select-audit-crowds',
  text: `select written.account_id, written.action, days.day from (
      select account_id, action from audit_entry
        where at at time zone 'UTC' > now() at time zone 'UTC' - interval '1 hour' and action <> 'audit_log.entries_left_out'
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

/** Accounts, actions and days that have more entries than so many. */
export async function selectCrowds(pool: pg.Pool, entriesPerDay: number): Promise<Crowd[]> {
  const { rows } = await pool.query<Crowd>({ ...SELECT_CROWDS, values: [entriesPerDay, CROWDS_MAX] });
  return rows;
}

/** Most credentials that an entry names in the place of others. */
const CREDENTIALS_MAX = 20;

/**
 * In one statement, so that there is never a removal without its count. The entry that counts has an id that follows from what it counts: processes that leave
 * out at once add to the same one, and what one has removed the other does not count.
 */
const LEAVE_OUT = {
  name: 'leave-out-audit-entries',
  text: `with crowd as (
      select id from audit_entry
        where account_id = $1 and action = $2
          and (action, at) >= ($2, $3::timestamptz) and (action, at) < ($2, $3::timestamptz + interval '24 hours')
        order by at, id offset $4 limit $5
    ), removed as (
      delete from audit_entry where id = any(array(select id from crowd)) returning at, credential_id
    ), summed as (
      select count(*)::int as count, min(at) as since, jsonb_build_object(
          'action', $2::text,
          'count', count(*),
          'until', to_char(max(at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
          'credentialIds', coalesce(to_jsonb((array_agg(distinct credential_id) filter (where credential_id is not null))[1:${CREDENTIALS_MAX}]), '[]')
        ) as changes
        from removed
    ), counted as (
      insert into audit_entry as kept (id, account_id, at, action, actor, subject, subject_id, changes)
        select md5(concat_ws('/', $1, $2, $3::timestamptz at time zone 'UTC'))::uuid, $1, since, 'audit_log.entries_left_out', 'service',
            'account', $1, changes
          from summed where count > 0
        on conflict (id) do update set changes = excluded.changes || jsonb_build_object(
          'count', (kept.changes->>'count')::int + (excluded.changes->>'count')::int,
          'until', greatest(kept.changes->>'until', excluded.changes->>'until'),
          'credentialIds', (
            select coalesce(jsonb_agg(id), '[]') from (
              select id from jsonb_array_elements(
                  (kept.changes->'credentialIds') || (excluded.changes->'credentialIds')
                ) with ordinality as named (id, place)
                group by id order by min(place) limit ${CREDENTIALS_MAX}
            ) ids
          )
        )
    )
    select count from summed`,
};

/** Leaves entries of a crowd out beyond so many, up to `limit`; answers how many. */
export async function leaveOutOf(
  pool: pg.Pool,
  { account_id, action, day }: Crowd,
  entriesPerDay: number,
  limit: number,
): Promise<number> {
  const values = [account_id, action, day, entriesPerDay, limit];
  const { rows } = await pool.query<{ count: number }>({ ...LEAVE_OUT, values });
  return rows[0]?.count ?? 0;
}
