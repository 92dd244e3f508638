import { type Insertable, type Kysely, type Selectable, sql } from 'kysely';
import type { AccountTable, IdentityDatabase } from '../db/schema.ts';

export interface AccountRow extends Selectable<AccountTable> {
  readonly two_factor_enabled: boolean;
}

const TWO_FACTOR_ENABLED = sql<boolean>`exists (
  select from two_factor where two_factor.account_id = account.id and two_factor.enabled_at is not null
)`.as('two_factor_enabled');

/** Unique indexes that a new account may run into. */
export const UNIQUE_INDEXES = ['account_username', 'account_email'] as const;

export async function insertAccount(db: Kysely<IdentityDatabase>, row: Insertable<AccountTable>): Promise<void> {
  await db.insertInto('account').values(row).execute();
}

export async function selectAccount(db: Kysely<IdentityDatabase>, id: string): Promise<AccountRow | undefined> {
  return db.selectFrom('account').selectAll().select(TWO_FACTOR_ENABLED).where('id', '=', id).executeTakeFirst();
}

/** The account with that email in any case. */
export async function selectAccountByEmail(db: Kysely<IdentityDatabase>, email: string): Promise<AccountRow | undefined> {
  return db
    .selectFrom('account')
    .selectAll()
    .select(TWO_FACTOR_ENABLED)
    .where(sql`lower(email collate "C")`, '=', sql`lower(${email} collate "C")`)
    .executeTakeFirst();
}

/** The account with that username in any case. */
export async function selectAccountByUsername(db: Kysely<IdentityDatabase>, username: string): Promise<AccountRow | undefined> {
  return db
    .selectFrom('account')
    .selectAll()
    .select(TWO_FACTOR_ENABLED)
    .where(sql`lower(username collate "C")`, '=', sql`lower(${username} collate "C")`)
    .executeTakeFirst();
}

/** Accounts in the order of their ids, which is nearly that of their creation, from the first or after one, up to `limit`. */
export async function selectAccounts(
  db: Kysely<IdentityDatabase>,
  { after, limit }: { readonly after: string | undefined; readonly limit: number },
): Promise<AccountRow[]> {
  const page = db.selectFrom('account').selectAll().select(TWO_FACTOR_ENABLED).orderBy('id').limit(limit);
  return (after === undefined ? page : page.where('id', '>', after)).execute();
}

export async function updatePasswordHash(tx: Kysely<IdentityDatabase>, id: string, passwordHash: string): Promise<void> {
  await tx.updateTable('account').set({ password_hash: passwordHash }).where('id', '=', id).execute();
}

/** Lets one transaction at a time past it; whether the account exists. Sign-ins of the account wait for its end. */
export async function lockAccount(tx: Kysely<IdentityDatabase>, id: string): Promise<boolean> {
  const row = await tx.selectFrom('account').select('id').where('id', '=', id).forNoKeyUpdate().executeTakeFirst();
  return row !== undefined;
}

/** The password of an account and how it was failed, with the account locked as {@link lockAccount} does; undefined where there is no such account. */
export async function lockPassword(
  tx: Kysely<IdentityDatabase>,
  id: string,
): Promise<Pick<AccountRow, 'password_hash' | 'password_failures'> | undefined> {
  const account = tx.selectFrom('account').select(['password_hash', 'password_failures']).where('id', '=', id);
  return account.forNoKeyUpdate().executeTakeFirst();
}

export async function updatePasswordFailures(tx: Kysely<IdentityDatabase>, id: string, failures: Date[]): Promise<void> {
  await tx.updateTable('account').set({ password_failures: failures }).where('id', '=', id).execute();
}

/** Makes every sign-in to the account that is under way come to nothing. */
export async function endSignInsUnderWay(tx: Kysely<IdentityDatabase>, id: string): Promise<void> {
  await tx
    .updateTable('account')
    .set((row) => ({ sign_in_generation: row('sign_in_generation', '+', 1) }))
    .where('id', '=', id)
    .execute();
}

/**
 * What a sign-in to an account is judged by, which with all else of the account stays as it is until the transaction ends; undefined where there is no
 * such account. Other sign-ins are not held up.
 */
export async function selectSignInBasisShared(
  tx: Kysely<IdentityDatabase>,
  id: string,
): Promise<Pick<AccountRow, 'password_hash' | 'sign_in_generation'> | undefined> {
  const account = tx.selectFrom('account').select(['password_hash', 'sign_in_generation']);
  return account.where('id', '=', id).forShare().executeTakeFirst();
}

/**
 * The hash of an account's password, null where it has none, which with all else of the account stays as it is until the transaction ends; undefined
 * where there is no such account.
 */
export async function selectPasswordHashShared(tx: Kysely<IdentityDatabase>, id: string): Promise<string | null | undefined> {
  return (await selectSignInBasisShared(tx, id))?.password_hash;
}
