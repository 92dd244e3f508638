import { type Insertable, type Selectable, sql, type Updateable } from 'kysely';
import type { AccountTable, Db } from '../db/schema.ts';

export type AccountRow = Selectable<AccountTable>;
export type Account = AccountRow & { readonly two_factor_enabled: boolean };

const TWO_FACTOR_ENABLED = sql<boolean>`exists (
  select from two_factor where two_factor.account_id = account.id and two_factor.enabled_at is not null
)`.as('two_factor_enabled');

const accounts = (db: Db) => db.selectFrom('account').selectAll().select(TWO_FACTOR_ENABLED);

export async function insertAccount(db: Db, row: Insertable<AccountTable>): Promise<Account> {
  const inserted = await db.insertInto('account').values(row).returningAll().executeTakeFirstOrThrow();
  return { ...inserted, two_factor_enabled: false };
}

export async function selectAccount(db: Db, id: string): Promise<Account | undefined> {
  return accounts(db).where('id', '=', id).executeTakeFirst();
}

export async function selectAccountBy(db: Db, column: 'email' | 'username', text: string): Promise<Account | undefined> {
  const folded = sql`lower(${sql.ref(column)} collate "C")`;
  return accounts(db).where(folded, '=', sql`lower(${text} collate "C")`).executeTakeFirst();
}

/** Up to `limit` accounts in the order of their ids, which is nearly that of their creation. */
export async function selectAccounts(db: Db, after: string | undefined, limit: number): Promise<Account[]> {
  const page = accounts(db).orderBy('id').limit(limit);
  return (after === undefined ? page : page.where('id', '>', after)).execute();
}

/** Locks an account against sign-ins and other changes until the transaction ends. */
export async function lockAccount(tx: Db, id: string): Promise<AccountRow | undefined> {
  return tx.selectFrom('account').selectAll().where('id', '=', id).forNoKeyUpdate().executeTakeFirst();
}

/** Locks an account against changes until the transaction ends, but not against other sign-ins. */
export async function lockAccountShared(tx: Db, id: string): Promise<AccountRow | undefined> {
  return tx.selectFrom('account').selectAll().where('id', '=', id).forShare().executeTakeFirst();
}

export async function updateAccount(tx: Db, id: string, changes: Updateable<AccountTable>): Promise<void> {
  await tx.updateTable('account').set(changes).where('id', '=', id).execute();
}
