import { type Insertable, type Selectable, sql } from 'kysely';
import type { AccountTable, Db } from '../db/schema.ts';

export interface AccountRow extends Selectable<AccountTable> {
  readonly two_factor_enabled: boolean;
}

const TWO_FACTOR_ENABLED = sql<boolean>`exists (
  select from two_factor where two_factor.account_id = account.id and two_factor.enabled_at is not null
)`.as('two_factor_enabled');

export const UNIQUE_INDEXES = ['account_username', 'account_email'] as const;

const accounts = (db: Db) => db.selectFrom('account').selectAll().select(TWO_FACTOR_ENABLED);

export async function insertAccount(db: Db, row: Insertable<AccountTable>): Promise<void> {
  await db.insertInto('account').values(row).execute();
}

export async function selectAccount(db: Db, id: string): Promise<AccountRow | undefined> {
  return accounts(db).where('id', '=', id).executeTakeFirst();
}

/** The account with that email or username in any case. */
export async function selectAccountBy(db: Db, column: 'email' | 'username', text: string): Promise<AccountRow | undefined> {
  const folded = sql`lower(${sql.ref(column)} collate "C")`;
  return accounts(db).where(folded, '=', sql`lower(${text} collate "C")`).executeTakeFirst();
}

/** Up to `limit` accounts in the order of their ids, which is nearly that of their creation. */
export async function selectAccounts(db: Db, after: string | undefined, limit: number): Promise<AccountRow[]> {
  const page = accounts(db).orderBy('id').limit(limit);
  return (after === undefined ? page : page.where('id', '>', after)).execute();
}

export async function updatePasswordHash(tx: Db, id: string, passwordHash: string): Promise<void> {
  await tx.updateTable('account').set({ password_hash: passwordHash }).where('id', '=', id).execute();
}

export type PasswordRow = Pick<AccountRow, 'password_hash' | 'password_failures'>;

/** Locks an account against sign-ins and other changes until the transaction ends. */
export async function lockAccount(tx: Db, id: string): Promise<PasswordRow | undefined> {
  const account = tx.selectFrom('account').select(['password_hash', 'password_failures']).where('id', '=', id);
  return account.forNoKeyUpdate().executeTakeFirst();
}

export async function updatePasswordFailures(tx: Db, id: string, failures: Date[]): Promise<void> {
  await tx.updateTable('account').set({ password_failures: failures }).where('id', '=', id).execute();
}

/** Cancels the sign-ins to an account that are under way. */
export async function endSignInsUnderWay(tx: Db, id: string): Promise<void> {
  const account = tx.updateTable('account').where('id', '=', id);
  await account.set((row) => ({ sign_in_generation: row('sign_in_generation', '+', 1) })).execute();
}

/** Locks an account against changes until the transaction ends, but not against other sign-ins. */
export async function lockAccountShared(
  tx: Db,
  id: string,
): Promise<Pick<AccountRow, 'password_hash' | 'sign_in_generation'> | undefined> {
  const account = tx.selectFrom('account').select(['password_hash', 'sign_in_generation']);
  return account.where('id', '=', id).forShare().executeTakeFirst();
}
