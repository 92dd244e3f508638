import { ApiKeyOrder, type ListApiKeyPageRequest } from '@latchkey/proto/latchkey/identity/v1/api_key_pb';
import { sql } from 'kysely';
import { lockAccount } from '../account/account.store.ts';
import { assignmentsOf, type Db, valuesOf } from '../db/schema.ts';

export interface ApiKeyRow {
  readonly id: string;
  readonly account_id: string;
  readonly name: string;
  readonly public_id: string;
  readonly scopes: string[];
  readonly all_applications: boolean;
  readonly application_ids: string[];
  readonly trusted_issuer_id: string | null;
  readonly expires_at: Date | null;
  readonly revoked_at: Date | null;
  readonly last_used_at: Date | null;
  readonly last_used_ip: string | null;
}

export interface ApiKeyRef {
  readonly accountId: string;
  readonly apiKeyId: string;
}

const keysOf = (accountId: string) => sql`from api_key where account_id = ${accountId}`;

/** Those in the lists of keys: of trusted issuers only the ones that have not expired. */
const listedOf = (accountId: string, now: Date) =>
  sql`${keysOf(accountId)} and (trusted_issuer_id is null or expires_at > ${now})`;

export async function selectApiKeys(db: Db, accountId: string, now: Date, after: string | undefined, limit: number) {
  const isLater = sql`and (created_at, id) > (select created_at, id ${keysOf(accountId)} and id = ${after})`;
  const { rows } = await sql<ApiKeyRow>`
    select * ${listedOf(accountId, now)} ${after === undefined ? sql`` : isLater}
    order by created_at, id limit ${limit}`.execute(db);
  return rows;
}

const BY_NAME = sql`lower(name)`;
const ORDERS = {
  [ApiKeyOrder.UNSPECIFIED]: BY_NAME,
  [ApiKeyOrder.NAME]: BY_NAME,
  [ApiKeyOrder.CREATED_AT]: sql`created_at`,
  [ApiKeyOrder.LAST_USED_AT]: sql`last_used_at`,
};

type Search = Pick<ListApiKeyPageRequest, 'search' | 'order' | 'descending'>;
type Page = Search & { readonly offset: number; readonly limit: number };

export async function selectApiKeyPage(db: Db, accountId: string, now: Date, page: Page) {
  const { search, order, descending, offset, limit } = page;
  const isFound = search === '' ? sql`` : sql`and strpos(lower(name), lower(${search}::text)) > 0`;
  const found = sql`${listedOf(accountId, now)} ${isFound}`;
  const direction = descending ? sql`desc` : sql`asc`;
  const [{ rows }, counted] = await Promise.all([
    sql<ApiKeyRow>`
      select * ${found} order by ${ORDERS[order]} ${direction} nulls last, created_at, id
      limit ${limit} offset ${offset}`.execute(db),
    sql<{ total: number }>`select count(*)::int as total ${found}`.execute(db),
  ]);
  return { apiKeys: rows, total: counted.rows[0]?.total ?? 0 };
}

export async function selectApiKey(db: Db, accountId: string, column: 'id' | 'public_id', value: string) {
  return (await sql<ApiKeyRow>`select * ${keysOf(accountId)} and ${sql.ref(column)} = ${value}`.execute(db)).rows[0];
}

/** Locks the account before, as its deletion does: in another order the two would deadlock. */
export async function lockApiKey(tx: Db, { accountId, apiKeyId }: ApiKeyRef): Promise<ApiKeyRow | undefined> {
  await lockAccount(tx, accountId);
  return (await sql<ApiKeyRow>`select * ${keysOf(accountId)} and id = ${apiKeyId} for update`.execute(tx)).rows[0];
}

export async function countActiveApiKeys(db: Db, accountId: string, now: Date): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count ${keysOf(accountId)}
      and trusted_issuer_id is null and revoked_at is null and (expires_at is null or expires_at > ${now})`.execute(db);
  return rows[0]?.count ?? 0;
}

const DELETED_AT_ONCE_MAX = 100;

/** Deletes some revoked and expired keys beyond the newest: a list of keys reads all of them. */
export async function deleteInactiveApiKeys(tx: Db, accountId: string, now: Date, kept: number): Promise<void> {
  await sql`
    delete from api_key where id in (
      select id ${keysOf(accountId)} and trusted_issuer_id is null and (revoked_at is not null or expires_at <= ${now})
      order by created_at desc, id desc limit ${DELETED_AT_ONCE_MAX} offset ${kept})`.execute(tx);
}

type NewApiKey = Pick<ApiKeyRow, 'id' | 'account_id' | 'name' | 'public_id' | 'scopes' | 'all_applications' | 'application_ids'> &
  Partial<Pick<ApiKeyRow, 'trusted_issuer_id' | 'expires_at'>> & {
    readonly key_hash: Buffer;
    readonly key_last4: string;
    readonly created_at: Date;
    readonly updated_at: Date;
  };

export async function insertApiKey(tx: Db, row: NewApiKey): Promise<ApiKeyRow> {
  return (await sql<ApiKeyRow>`insert into api_key ${valuesOf(row)} returning *`.execute(tx)).rows[0] as ApiKeyRow;
}

type Changes = Partial<ApiKeyRow> & { readonly updated_at: Date };

export async function updateApiKeyRow(tx: Db, id: string, changes: Changes): Promise<ApiKeyRow> {
  const { rows } = await sql<ApiKeyRow>`update api_key set ${assignmentsOf(changes)} where id = ${id} returning *`.execute(tx);
  return rows[0] as ApiKeyRow;
}
