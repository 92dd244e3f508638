import type { Insertable, Kysely, Selectable, Updateable } from 'kysely';
import type { ApiKeyTable, IdentityDatabase } from '../db/schema.ts';

export type ApiKeyRow = Selectable<ApiKeyTable>;

/** Names a key of an account, both in canonical form. */
export interface ApiKeyRef {
  readonly accountId: string;
  readonly id: string;
}

/** Keys of an account, oldest first, up to `limit`, from the first or after one of them. */
export async function selectApiKeys(
  db: Kysely<IdentityDatabase>,
  accountId: string,
  { after, limit }: { readonly after: string | undefined; readonly limit: number },
): Promise<ApiKeyRow[]> {
  const ofAccount = db.selectFrom('api_key').where('account_id', '=', accountId);
  const page = ofAccount.selectAll().orderBy('created_at').orderBy('id').limit(limit);
  if (!after) return page.execute();
  const last = ofAccount.select(['created_at', 'id']).where('id', '=', after);
  return page.where(({ eb, refTuple }) => eb(refTuple('created_at', 'id'), '>', last.$asTuple('created_at', 'id'))).execute();
}

export async function selectApiKey(db: Kysely<IdentityDatabase>, { accountId, id }: ApiKeyRef): Promise<ApiKeyRow | undefined> {
  return db.selectFrom('api_key').selectAll().where('id', '=', id).where('account_id', '=', accountId).executeTakeFirst();
}

/** The account's key with that public id. */
export async function selectApiKeyOfPublicId(
  db: Kysely<IdentityDatabase>,
  accountId: string,
  publicId: string,
): Promise<ApiKeyRow | undefined> {
  return db
    .selectFrom('api_key')
    .selectAll()
    .where('public_id', '=', publicId)
    .where('account_id', '=', accountId)
    .executeTakeFirst();
}

/** The key with its row locked until the transaction ends. */
export async function lockApiKey(tx: Kysely<IdentityDatabase>, { accountId, id }: ApiKeyRef): Promise<ApiKeyRow | undefined> {
  return tx
    .selectFrom('api_key')
    .selectAll()
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .forUpdate()
    .executeTakeFirst();
}

/** Number of keys of an account that are neither revoked nor expired at that time. */
export async function countActiveApiKeys(tx: Kysely<IdentityDatabase>, accountId: string, now: Date): Promise<number> {
  const { count } = await tx
    .selectFrom('api_key')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where('account_id', '=', accountId)
    .where('revoked_at', 'is', null)
    .where(({ eb, or }) => or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
    .executeTakeFirstOrThrow();
  return Number(count);
}

export async function insertApiKey(tx: Kysely<IdentityDatabase>, row: Insertable<ApiKeyTable>): Promise<ApiKeyRow> {
  return tx.insertInto('api_key').values(row).returningAll().executeTakeFirstOrThrow();
}

export async function updateApiKeyRow(
  tx: Kysely<IdentityDatabase>,
  id: string,
  changes: Updateable<ApiKeyTable>,
): Promise<ApiKeyRow> {
  return tx.updateTable('api_key').set(changes).where('id', '=', id).returningAll().executeTakeFirstOrThrow();
}
