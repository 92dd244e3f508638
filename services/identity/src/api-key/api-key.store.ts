import { ApiKeyOrder } from '@latchkey/proto/latchkey/identity/v1/api_key_pb';
import { type Insertable, type Selectable, sql, type Updateable } from 'kysely';
import { lockAccount } from '../account/account.store.ts';
import type { ApiKeyTable, Db } from '../db/schema.ts';

export type ApiKeyRow = Selectable<ApiKeyTable>;

export interface ApiKeyRef {
  readonly accountId: string;
  readonly apiKeyId: string;
}

const keysOf = (db: Db, accountId: string) => db.selectFrom('api_key').where('account_id', '=', accountId);

/** Those in the lists of keys: of trusted issuers only the ones that have not expired. */
const listedOf = (db: Db, accountId: string, now: Date) =>
  keysOf(db, accountId).where(({ eb, or }) => or([eb('trusted_issuer_id', 'is', null), eb('expires_at', '>', now)]));

export async function selectApiKeys(db: Db, accountId: string, now: Date, after: string | undefined, limit: number) {
  const page = listedOf(db, accountId, now).selectAll().orderBy('created_at').orderBy('id').limit(limit);
  if (!after) return page.execute();
  const last = keysOf(db, accountId).select(['created_at', 'id']).where('id', '=', after);
  return page.where(({ eb, refTuple }) => eb(refTuple('created_at', 'id'), '>', last.$asTuple('created_at', 'id'))).execute();
}

const BY_NAME = sql`lower(name)`;
const ORDERS = {
  [ApiKeyOrder.UNSPECIFIED]: BY_NAME,
  [ApiKeyOrder.NAME]: BY_NAME,
  [ApiKeyOrder.CREATED_AT]: sql`created_at`,
  [ApiKeyOrder.LAST_USED_AT]: sql`last_used_at`,
};

export interface ApiKeyPage {
  readonly search: string;
  readonly order: ApiKeyOrder;
  readonly descending: boolean;
  readonly offset: number;
  readonly limit: number;
}

export async function selectApiKeyPage(db: Db, accountId: string, now: Date, page: ApiKeyPage) {
  const { search, order, descending, offset, limit } = page;
  const isFound = sql<boolean>`strpos(lower(name), lower(${search}::text)) > 0`;
  const listed = listedOf(db, accountId, now);
  const found = search === '' ? listed : listed.where(isFound);
  const direction = descending ? sql`desc nulls last` : sql`asc nulls last`;
  const inOrder = found.orderBy(sql`${ORDERS[order]} ${direction}`).orderBy('created_at').orderBy('id');
  const [rows, { total }] = await Promise.all([
    inOrder.selectAll().limit(limit).offset(offset).execute(),
    found.select(sql<number>`count(*)::int`.as('total')).executeTakeFirstOrThrow(),
  ]);
  return { apiKeys: rows, total };
}

export async function selectApiKey(db: Db, accountId: string, column: 'id' | 'public_id', value: string) {
  return keysOf(db, accountId).selectAll().where(column, '=', value).executeTakeFirst();
}

/** Locks the account before, as its deletion does: in another order the two would deadlock. */
export async function lockApiKey(tx: Db, { accountId, apiKeyId }: ApiKeyRef): Promise<ApiKeyRow | undefined> {
  await lockAccount(tx, accountId);
  return keysOf(tx, accountId).selectAll().where('id', '=', apiKeyId).forUpdate().executeTakeFirst();
}

export async function countActiveApiKeys(db: Db, accountId: string, now: Date): Promise<number> {
  const { count } = await keysOf(db, accountId)
    .select(sql<number>`count(*)::int`.as('count'))
    .where('trusted_issuer_id', 'is', null)
    .where('revoked_at', 'is', null)
    .where(({ eb, or }) => or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
    .executeTakeFirstOrThrow();
  return count;
}

const DELETED_AT_ONCE_MAX = 100;

/** Deletes some revoked and expired keys beyond the newest: a list of keys reads all of them. */
export async function deleteInactiveApiKeys(tx: Db, accountId: string, now: Date, kept: number): Promise<void> {
  const inactive = keysOf(tx, accountId)
    .select('id')
    .where('trusted_issuer_id', 'is', null)
    .where(({ eb, or }) => or([eb('revoked_at', 'is not', null), eb('expires_at', '<=', now)]))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .offset(kept)
    .limit(DELETED_AT_ONCE_MAX);
  await tx.deleteFrom('api_key').where('id', 'in', inactive).execute();
}

export async function insertApiKey(tx: Db, row: Insertable<ApiKeyTable>): Promise<ApiKeyRow> {
  return tx.insertInto('api_key').values(row).returningAll().executeTakeFirstOrThrow();
}

export async function updateApiKeyRow(tx: Db, id: string, changes: Updateable<ApiKeyTable>): Promise<ApiKeyRow> {
  return tx.updateTable('api_key').set(changes).where('id', '=', id).returningAll().executeTakeFirstOrThrow();
}
