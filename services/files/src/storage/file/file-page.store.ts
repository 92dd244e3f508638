import type pg from 'pg';

export interface FilePage {
  /** With the columns of the message `File`. */
  readonly rows: readonly object[];
  readonly total: number;
}

export interface Slice {
  readonly offset: number;
  readonly limit: number;
}

/**
 * The rows of the ids that the index found, or one row of nulls for the total. `offset 0` makes
 * PostgreSQL query each row by id: it overestimates their number, and would scan whole tables.
 */
const ROWS_OF_PAGE = `
  select total.n as total, f.*, url.*
  from total left join (
    page cross join lateral (
      select file.id, display_name, byte_size, checksum, content_type, file.created_at from file where file.id = page.id offset 0
    ) as f left join lateral (
      select created_count as presigned_urls_count, last_created_at as last_presigned_url_created_at
      from file_download_url where file_id = page.id offset 0
    ) as url on true
  ) on true
  order by f.created_at desc, f.id desc`;

/**
 * A page, found from the nearer end of the index, since skipping entries takes time; the scan from
 * the other end has a limit of zero. One statement reads the counter and the rows at one moment.
 */
const SELECT_PAGE = {
  name: 'select-files-page',
  text: `
  with total as materialized (
    select coalesce((select file_count from application_usage where application_id = $1), 0) as n,
      $2::bigint as size, $3::bigint as start
  ), page as materialized (
    (select id from file where application_id = $1 order by created_at desc, id desc
      limit (select case when start <= n / 2 then size else 0 end from total) offset (select start from total))
    union all
    (select id from file where application_id = $1 order by created_at, id
      limit (select case when start <= n / 2 then 0 else greatest(least(size, n - start), 0) end from total)
      offset (select greatest(n - start - size, 0) from total))
  )${ROWS_OF_PAGE}`,
};

/**
 * A page of a search. The index includes the names, so one scan of the application's part finds the
 * ids of the page and counts the rest. A page past the end takes a second scan.
 */
const SELECT_MATCHES = {
  name: 'select-files-matches',
  text: `
  with page as materialized (
    select id, created_at from file where application_id = $1 and folded_name like $4
    order by created_at desc, id desc limit $2::bigint offset $3::bigint
  ), found as materialized (
    select count(*) as n, $3::bigint + count(*) as up_to from page
  ), last as materialized (
    select created_at, id from page order by created_at, id limit 1
  ), total as materialized (
    select case
      when n = $2::bigint then up_to + (
        select count(*) from file where application_id = $1 and folded_name like $4
          and (created_at, id) < ((select created_at from last), (select id from last)))
      when n = 0 and $3::bigint > 0 then (select count(*) from file where application_id = $1 and folded_name like $4)
      else up_to
    end as n from found
  )${ROWS_OF_PAGE}`,
};

export async function selectPage(pool: pg.Pool, applicationId: string, slice: Slice): Promise<FilePage> {
  return toPage(await pool.query<Row>({ ...SELECT_PAGE, values: [applicationId, slice.limit, slice.offset] }));
}

export async function selectMatches(pool: pg.Pool, applicationId: string, folded: string, slice: Slice): Promise<FilePage> {
  const pattern = `%${folded.replace(/[\\%_]/g, '\\$&')}%`;
  return toPage(await pool.query<Row>({ ...SELECT_MATCHES, values: [applicationId, slice.limit, slice.offset, pattern] }));
}

type Row = { readonly id: string | null; readonly total: string };

function toPage({ rows }: { readonly rows: readonly Row[] }): FilePage {
  return { rows: rows.filter((row) => row.id !== null), total: Number(rows[0]?.total ?? 0) };
}
