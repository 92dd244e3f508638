import type { Insertable, Selectable, Updateable } from 'kysely';
import type { ApiKeyTable, Db } from '../db/schema.ts';

export type ApiKeyRow = Selectable<ApiKeyTable>;

export interface ApiKeyRef {
  readonly accountId: string;
  readonly apiKeyId: string;
}

const keysOf = (db: Db, accountId: string) => db.selectFrom('api_key').where('account_id', '=', accountId);

/** Those in the list of keys: of trusted issuers only the ones that have not expired. */
export async function selectApiKeys(db: Db, accountId: string, now: Date, after: string | undefined, limit: number) {
  const listed = keysOf(db, accountId).where(({ eb, or }) =>
    or([eb('trusted_issuer_id', 'is', null), eb('expires_at', '>', now)]),
  );
  const page = listed.selectAll().orderBy('created_at').orderBy('id').limit(limit);
  if (!after) return page.execute();
  const last = keysOf(db, accountId).select(['created_at', 'id']).where('id', '=', after);
  return page.where(({ eb, refTuple }) => eb(refTuple('created_at', 'id'), '>', last.$asTuple('created_at', 'id'))).execute();
}

export async function selectApiKey(db: Db, accountId: string, column: 'id' | 'public_id', value: string) {
  return keysOf(db, accountId).selectAll().where(column, '=', value).executeTakeFirst();
}

export async function lockApiKey(tx: Db, { accountId, apiKeyId }: ApiKeyRef): Promise<ApiKeyRow | undefined> {
  return keysOf(tx, accountId).selectAll().where('id', '=', apiKeyId).forUpdate().executeTakeFirst();
}

export async function countActiveApiKeys(db: Db, accountId: string, now: Date): Promise<number> {
  const { count } = await keysOf(db, accountId)
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where('trusted_issuer_id', 'is', null)
    .where('revoked_at', 'is', null)
    .where(({ eb, or }) => or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
    .executeTakeFirstOrThrow();
  return Number(count);
}

export async function insertApiKey(tx: Db, row: Insertable<ApiKeyTable>): Promise<ApiKeyRow> {
  return tx.insertInto('api_key').values(row).returningAll().executeTakeFirstOrThrow();
}

export async function updateApiKeyRow(tx: Db, id: string, changes: Updateable<ApiKeyTable>): Promise<ApiKeyRow> {
  return tx.updateTable('api_key').set(changes).where('id', '=', id).returningAll().executeTakeFirstOrThrow();
}
