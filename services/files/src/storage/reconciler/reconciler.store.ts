import { sql } from 'kysely';
import type { Db } from '../../db/schema.ts';
import { parseObjectKey } from '../object-store/object-store.ts';

/** A row that has an object: a file of an application, or the avatar of an account. */
export interface ObjectRow {
  readonly type: 'file' | 'avatar';
  readonly id: string;
  readonly ownerId: string;
  readonly displayName: string;
  readonly key: string;
  readonly byteSize: number;
  readonly checksum: Buffer;
}

/** Sorts before every id. */
const FIRST_ID = '00000000-0000-0000-0000-000000000000';

/** The rows of a query in pages, which follow one another by id. */
export async function* inPages<T extends { readonly id: string }>(
  db: Db,
  select: (db: Db, after: string, limit: number) => Promise<T[]>,
  size: number,
): AsyncGenerator<T[]> {
  for (let after: string | undefined = FIRST_ID; after !== undefined; ) {
    const page: T[] = await select(db, after, size);
    yield page;
    after = page.length < size ? undefined : page.at(-1)?.id;
  }
}

export async function selectObjectRows(db: Db, after: string, limit: number): Promise<ObjectRow[]> {
  const { rows } = await sql<ObjectRow>`
    (select 'file' as type, id, application_id as "ownerId", application_id || '/' || coalesce(object_id, id) as key,
        display_name as "displayName", byte_size::float8 as "byteSize", checksum
      from file where id > ${after} order by id limit ${limit})
    union all
    (select 'avatar', id, account_id, account_id || '/' || image_id, '', byte_size::float8, checksum
      from avatar where id > ${after} and state = 'recorded' order by id limit ${limit})
    order by id limit ${limit}`.execute(db);
  return rows;
}

/** True while a row has this object. */
export async function hasRow(db: Db, { id, key }: ObjectRow): Promise<boolean> {
  const { rows } = await sql`
    select 1 from file where id = ${id} and application_id || '/' || coalesce(object_id, id) = ${key}
    union all select 1 from avatar where id = ${id} and state = 'recorded'`.execute(db);
  return rows.length > 0;
}

/** Takes an avatar from its account; false where the account has another by now. */
export async function endAvatar(tx: Db, id: string): Promise<boolean> {
  const { numAffectedRows = 0n } = await sql`
    update avatar set state = 'replaced', due_at = now() where id = ${id} and state = 'recorded'`.execute(tx);
  return numAffectedRows > 0n;
}

/**
 * The keys that no file, avatar, upload or scheduled removal has, all at one moment: an object
 * passes from one to another in one transaction.
 */
export async function selectUnknownKeys(db: Db, keys: readonly string[]): Promise<Set<string>> {
  const parts = keys.map((key) => parseObjectKey(key));
  const ownerIds = parts.map((part) => part?.ownerId ?? null);
  const ids = parts.map((part) => part?.id ?? null);
  const { rows } = await sql<{ key: string }>`
    select listed.key from unnest(${keys}::text[], ${ownerIds}::uuid[], ${ids}::uuid[]) as listed (key, owner_id, id)
    where not exists (select from file where file.id = listed.id and object_id is null and application_id = owner_id)
      and not exists (select from file where object_id = listed.id and application_id = owner_id)
      and not exists (select from upload_intent as upload where upload.id = listed.id and application_id = owner_id)
      and not exists (
        select from resumable_upload as upload where application_id = owner_id and state = 'open'
          and (upload.id = listed.id or claim_id = listed.id or store_state->>'tail' = listed.id::text))
      and not exists (
        select from avatar where image_id = listed.id and account_id = owner_id and state in ('stored', 'recorded'))
      and not exists (select from object_deletion where object_key = listed.key)`.execute(db);
  return new Set(rows.map((row) => row.key));
}

export type Usage = Readonly<Record<'fileCount' | 'chargedMib', number>>;

/** The usage of the next applications by id, recorded if it is and actual, at one moment. */
export async function selectUsagePage(db: Db, after: string, limit: number) {
  const { rows } = await sql<{ id: string; recorded: Usage | null; actual: Usage }>`
    with page as (
      (select application_id from application_usage where application_id > ${after} order by application_id limit ${limit})
      union
      (select distinct application_id from file where application_id > ${after} order by application_id limit ${limit})
      order by application_id limit ${limit}
    ), actual as (
      select application_id, count(*) as n, sum(greatest(1, byte_size / 1048576)) as mib
      from file where application_id in (select application_id from page) group by application_id
    )
    select application_id as id,
      case when file_count is not null then jsonb_build_object('fileCount', file_count, 'chargedMib', charged_mib) end as recorded,
      jsonb_build_object('fileCount', coalesce(n, 0), 'chargedMib', coalesce(mib, 0)) as actual
    from page left join actual using (application_id) left join application_usage using (application_id)
    order by application_id`.execute(db);
  return rows;
}

/** Records the actual usage. The row lock orders this and changes of the application's files. */
export async function recountUsage(tx: Db, applicationId: string): Promise<void> {
  await sql`
    insert into application_usage (application_id, account_id, file_count, charged_mib)
    select application_id, account_id, 0, 0 from file where application_id = ${applicationId} limit 1
    on conflict do nothing`.execute(tx);
  await sql`select from application_usage where application_id = ${applicationId} for update`.execute(tx);
  await sql`
    update application_usage as usage set file_count = actual.n, charged_mib = actual.mib
    from (
      select count(*) as n, coalesce(sum(greatest(1, byte_size / 1048576)), 0) as mib
      from file where application_id = ${applicationId}
    ) as actual
    where usage.application_id = ${applicationId}`.execute(tx);
}
