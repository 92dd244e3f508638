import { type RawBuilder, sql } from 'kysely';
import { assignmentsOf, type Db, valuesOf } from '../db/schema.ts';

export interface AccountRow {
  readonly id: string;
  readonly username: string;
  readonly email: string;
  readonly password_hash: string | null;
  readonly picture_url: string | null;
  readonly avatar_id: string | null;
  readonly avatar_uploaded_at: Date | null;
  readonly avatar_removed: boolean;
  readonly sign_in_generation: number;
  readonly password_failures: readonly Date[];
  readonly created_at: Date;
}

export type Account = AccountRow & { readonly two_factor_enabled: boolean };

type NewAccount = Pick<AccountRow, 'id' | 'username' | 'email' | 'password_hash' | 'created_at'> & Partial<AccountRow>;

export async function insertAccount(db: Db, row: NewAccount): Promise<Account> {
  const { rows } = await sql<Account>`
    insert into account ${valuesOf(row)} returning *, false as two_factor_enabled`.execute(db);
  return rows[0] as Account;
}

async function selectWhere(db: Db, condition: RawBuilder<unknown>): Promise<Account[]> {
  const { rows } = await sql<Account>`
    select *, exists (
      select from two_factor where two_factor.account_id = account.id and enabled_at is not null
    ) as two_factor_enabled
    from account where ${condition}`.execute(db);
  return rows;
}

export async function selectAccount(db: Db, id: string): Promise<Account | undefined> {
  return (await selectWhere(db, sql`id = ${id}`))[0];
}

export async function selectAccountBy(db: Db, column: 'email' | 'username', text: string): Promise<Account | undefined> {
  return (await selectWhere(db, sql`lower(${sql.ref(column)} collate "C") = lower(${text} collate "C")`))[0];
}

/** Up to `limit` accounts in the order of their ids, which is nearly that of their creation. */
export async function selectAccounts(db: Db, after: string | undefined, limit: number): Promise<Account[]> {
  return selectWhere(db, sql`${after === undefined ? sql`true` : sql`id > ${after}`} order by id limit ${limit}`);
}

/** Locks an account against sign-ins and other changes until the transaction ends. */
export async function lockAccount(tx: Db, id: string): Promise<AccountRow | undefined> {
  return (await sql<AccountRow>`select * from account where id = ${id} for no key update`.execute(tx)).rows[0];
}

/** Locks an account against changes until the transaction ends, but not against other sign-ins. */
export async function lockAccountShared(tx: Db, id: string): Promise<AccountRow | undefined> {
  return (await sql<AccountRow>`select * from account where id = ${id} for share`.execute(tx)).rows[0];
}

export async function updateAccount(tx: Db, id: string, changes: Partial<AccountRow>): Promise<void> {
  await sql`update account set ${assignmentsOf(changes)} where id = ${id}`.execute(tx);
}
