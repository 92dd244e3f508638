import { assignmentsOf, valuesOf } from '@latchkey/kit/database/columns';
import { createSharedRead } from '@latchkey/kit/database/shared-read';
import {
  ApplicationSettingsSchema,
  type ListApplicationSummariesRequest,
  SummaryOrder,
} from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { type RawBuilder, sql } from 'kysely';
import type pg from 'pg';
import type { Db, SettingsRow } from '../db/schema.ts';
import { createEventReads, EPOCH } from '../event/event-log.store.ts';
import type { RuntimeKeyType } from '../runtime-key/runtime-key-text.ts';
import type { Page } from './page-token.ts';

const SETTING_COLUMNS = ApplicationSettingsSchema.fields.map(({ name }) => name as keyof SettingsRow);

/**
 * An application whose row is locked for a change: the columns that a change may depend on, not the
 * sealed keys and the levels, which can be long.
 */
export interface ApplicationRow extends SettingsRow {
  readonly id: string;
  readonly account_id: string;
  readonly name: string;
  readonly recent_rotations: Date[];
  readonly last_sequence: string;
  readonly public_updates: boolean;
  readonly signing_keys: string[];
}

type KeyColumns = Readonly<Record<'socket_key_hash' | 'socket_key_sealed' | 'http_key_hash' | 'http_key_sealed', Buffer>>;

/** Columns that a change may write. */
export type ApplicationValues = Partial<
  Omit<ApplicationRow, 'id' | 'account_id' | 'name' | 'last_sequence'> &
    KeyColumns & { readonly runtime_keys_updated_at: Date; readonly license_levels: string[]; readonly last_sequence: number }
>;

export async function insertApplication(
  db: Db,
  row: Pick<ApplicationRow, 'id' | 'account_id' | 'name'> &
    KeyColumns & { readonly runtime_keys_updated_at: Date; readonly created_at: Date },
): Promise<void> {
  await sql`insert into application ${valuesOf(row)}`.execute(db);
}

/** An application of a list. Parsing times and bytes would cost more than the rest of the list. */
interface ListedRow {
  readonly id: string;
  readonly name: string;
  readonly socket_key_hex: string;
  readonly http_key_hex: string;
  readonly keys_updated_ms: number;
  readonly created_ms: number;
  /** Previous keys that are accepted still, by type; null without one. */
  readonly previous_keys: Readonly<Partial<Record<RuntimeKeyType, PreviousKey>>> | null;
}

export interface PreviousKey {
  readonly expires_ms: number;
  readonly used_ms: number | null;
}

/** Applications of an account in order of creation, all or only the given ones. */
export async function selectApplications(
  db: Db,
  accountId: string,
  ids: readonly string[] | undefined,
  { after, limit }: Pick<Page, 'after' | 'limit'>,
  now: Date,
): Promise<ListedRow[]> {
  const isGiven = ids ? sql`and ${isOneOf(ids)}` : sql``;
  const isAfter = after ? sql`and (created_at, id) > (${after.createdAt}, ${after.id})` : sql``;
  const { rows } = await sql<ListedRow>`
    select id, name, encode(socket_key_sealed, 'hex') as socket_key_hex, encode(http_key_sealed, 'hex') as http_key_hex,
      extract(epoch from runtime_keys_updated_at)::float8 * 1000 as keys_updated_ms,
      extract(epoch from created_at)::float8 * 1000 as created_ms,
      (select json_object_agg(type, json_build_object('expires_ms', extract(epoch from expires_at) * 1000,
          'used_ms', extract(epoch from last_used_at) * 1000))
        from previous_runtime_key where application_id = application.id and expires_at > ${now}) as previous_keys
    from application where account_id = ${accountId} ${isGiven} ${isAfter}
    order by created_at, id limit ${limit}`.execute(db);
  return rows;
}

const BY_NAME = sql`lower(name)`;
const ORDERS: Readonly<Record<SummaryOrder, RawBuilder<unknown>>> = {
  [SummaryOrder.UNSPECIFIED]: BY_NAME,
  [SummaryOrder.NAME]: BY_NAME,
  [SummaryOrder.STATUS]: sql`status`,
  [SummaryOrder.VERSION]: sql`version`,
  [SummaryOrder.UPDATED_AT]: sql`changed_at`,
  [SummaryOrder.RANK]: sql`coalesce(ranked.rank, 0)`,
};

type SummaryPage = Pick<ListApplicationSummariesRequest, 'search' | 'order' | 'descending' | 'ranks'> & {
  readonly ids: readonly string[] | undefined;
  readonly offset: number;
  readonly limit: number;
};

interface SummaryRow {
  /** Applications on all pages. The columns are null on a page past the end. */
  readonly total: number;
  readonly id: string | null;
  readonly name: string;
  readonly status: SettingsRow['status'];
  readonly version: string;
  readonly updated_at: Date;
}

/** A page of an account's applications for people, with the number of all. At least one row. */
export async function selectSummaries(db: Db, accountId: string, page: SummaryPage): Promise<SummaryRow[]> {
  const isGiven = page.ids ? sql`and ${isOneOf(page.ids)}` : sql``;
  const isFound = page.search === '' ? sql`` : sql`and strpos(lower(name), lower(${page.search}::text)) > 0`;
  const direction = page.descending ? sql`desc` : sql`asc`;
  const ranked = sql`left join unnest(${page.ranks.map(({ applicationId }) => applicationId)}::uuid[], ${page.ranks.map(({ rank }) => `${rank}`)}::bigint[])
      as ranked (application_id, rank) on ranked.application_id = found.id`;
  const { rows } = await sql<SummaryRow>`
    with found as (
      select id, name, status, version, created_at, coalesce(updated_at, created_at) as changed_at
      from application where account_id = ${accountId} ${isGiven} ${isFound}
    )
    select counted.total, shown.* from (select count(*)::int as total from found) counted
    left join lateral (
      select id, name, status, version, changed_at as updated_at from found ${page.order === SummaryOrder.RANK ? ranked : sql``}
      order by ${ORDERS[page.order] ?? BY_NAME} ${direction}, created_at, id limit ${page.limit} offset ${page.offset}
    ) shown on true`.execute(db);
  return rows;
}

/** One parameter for any number of ids: a statement has 65,535 parameters at most. */
const isOneOf = (ids: readonly string[]) => sql<boolean>`id = any(${ids}::uuid[])`;

export async function selectOwnedIds(db: Db, accountId: string, ids: readonly string[]): Promise<string[]> {
  const { rows } = await sql<Pick<ApplicationRow, 'id'>>`
    select id from application where account_id = ${accountId} and ${isOneOf(ids)}`.execute(db);
  return rows.map((row) => row.id);
}

export async function countApplications(db: Db, accountId: string): Promise<number> {
  const { rows } = await sql<{ count: string }>`
    select count from application_count where account_id = ${accountId}`.execute(db);
  return Number(rows[0]?.count ?? 0);
}

/** Deletes applications of an account, up to a number, which concurrent calls lock in one order. */
export async function removeApplicationsOf(tx: Db, accountId: string, limit: number) {
  const { rows } = await sql<Pick<ApplicationRow, 'id' | 'account_id' | 'name' | 'last_sequence'>>`
    delete from application where id = any(array(
      select id from application where account_id = ${accountId} order by id limit ${limit} for update))
    returning id, account_id, name, last_sequence`.execute(tx);
  return rows;
}

/** Serialises the transactions that create an application of the account. */
export async function lockAccount(tx: Db, accountId: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`applications/${accountId}`}, 0))`.execute(tx);
}

/** The account's application, its row locked until the transaction ends; undefined without one. */
export async function lockApplication(tx: Db, accountId: string, applicationId: string): Promise<ApplicationRow | undefined> {
  const { rows } = await sql<ApplicationRow>`
    select id, account_id, name, recent_rotations, last_sequence, public_updates, signing_keys, ${sql.raw(`${SETTING_COLUMNS}`)}
    from application where id = ${applicationId} and account_id = ${accountId} for update`.execute(tx);
  return rows[0];
}

export async function updateApplication(tx: Db, id: string, changes: ApplicationValues): Promise<void> {
  await sql`update application set ${assignmentsOf({ ...changes, updated_at: sql`now()` })} where id = ${id}`.execute(tx);
}

export async function removeApplication(tx: Db, id: string): Promise<void> {
  await sql`delete from application where id = ${id}`.execute(tx);
}

/** The license levels in their order, or undefined if the account has no such application. */
export async function selectLevels(db: Db, accountId: string, applicationId: string) {
  const { rows } = await sql<{ license_levels: string[] }>`
    select license_levels from application where id = ${applicationId} and account_id = ${accountId}`.execute(db);
  return rows[0]?.license_levels;
}

/** The application behind a runtime key. */
export type KeyHolderRow = SettingsRow &
  Pick<ApplicationRow, 'id' | 'account_id' | 'name' | 'last_sequence'> & { readonly epoch: string };

/** The same of a rotated key, which may have expired. */
type PreviousKeyRow = KeyHolderRow & {
  readonly type: RuntimeKeyType;
  readonly expires_at: Date;
  readonly last_used_at: Date | null;
};

/** A channel as updaters see it; its releases in JSON, null without published ones. */
interface FeedRow {
  readonly name: string;
  readonly http_key_hash: Buffer;
  readonly public_updates: boolean;
  readonly releases: string | null;
}

/**
 * The most frequent reads of the service: settings, the application of a runtime key, and feeds.
 */
export function createReads(pool: pg.Pool) {
  const keyHolder = `id, account_id, name, last_sequence, ${SETTING_COLUMNS}, ${EPOCH}`;
  const byKey = (type: 'socket' | 'http') =>
    createSharedRead<KeyHolderRow>(pool, {
      name: `select-by-${type}-key`,
      key: { hash: 'bytea' },
      select: `select ${keyHolder} from application where ${type}_key_hash = asked.hash`,
    });
  const selectByKeyHash: Record<RuntimeKeyType, (hash: Buffer) => Promise<KeyHolderRow | undefined>> = {
    socketKey: byKey('socket'),
    httpKey: byKey('http'),
  };
  const selectByPreviousKey: (hash: Buffer) => Promise<PreviousKeyRow | undefined> = createSharedRead(pool, {
    name: 'select-by-previous-key',
    key: { hash: 'bytea' },
    select: `select ${keyHolder}, type, expires_at, last_used_at
      from previous_runtime_key join application on id = application_id where hash = asked.hash`,
  });
  const selectSettings: (id: string, accountId: string) => Promise<SettingsRow | undefined> = createSharedRead(pool, {
    name: 'select-settings',
    key: { id: 'uuid', account_id: 'uuid' },
    select: `select ${SETTING_COLUMNS} from application where id = asked.id and account_id = asked.account_id`,
  });
  const selectFeed: (id: string, channel: string) => Promise<FeedRow | undefined> = createSharedRead(pool, {
    name: 'select-feed',
    key: { id: 'uuid', channel: 'text' },
    select: `select name, http_key_hash, public_updates, releases::text from application
      left join release_feed on application_id = id and release_feed.channel = asked.channel where id = asked.id`,
  });
  return { selectByKeyHash, selectByPreviousKey, selectSettings, selectFeed, selectEvents: createEventReads(pool) };
}

export async function selectFirstSealedKey(db: Db) {
  const { rows } = await sql<{ id: string; socket_key_sealed: Buffer }>`
    select id, socket_key_sealed from application order by id limit 1`.execute(db);
  return rows[0];
}
