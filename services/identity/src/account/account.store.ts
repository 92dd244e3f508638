import { type Insertable, type Kysely, type Selectable, sql } from 'kysely';
import type { AccountTable, IdentityDatabase } from '../db/schema.ts';

export type AccountRow = Selectable<AccountTable>;

/** Unique indexes that a new account may run into. */
export const UNIQUE_INDEXES = ['account_username', 'account_email'] as const;

export async function insertAccount(db: Kysely<IdentityDatabase>, row: Insertable<AccountTable>): Promise<void> {
  await db.insertInto('account').values(row).execute();
}

export async function selectAccount(db: Kysely<IdentityDatabase>, id: string): Promise<AccountRow | undefined> {
  return db.selectFrom('account').selectAll().where('id', '=', id).executeTakeFirst();
}

/** The account with that email in any case. */
export async function selectAccountByEmail(db: Kysely<IdentityDatabase>, email: string): Promise<AccountRow | undefined> {
  return db
    .selectFrom('account')
    .selectAll()
    .where(sql`lower(email collate "C")`, '=', sql`lower(${email} collate "C")`)
    .executeTakeFirst();
}

/** Lets one transaction at a time past it; whether the account exists. Sign-ins of the account are not held up. */
export async function lockAccount(tx: Kysely<IdentityDatabase>, id: string): Promise<boolean> {
  const row = await tx.selectFrom('account').select('id').where('id', '=', id).forNoKeyUpdate().executeTakeFirst();
  return row !== undefined;
}
