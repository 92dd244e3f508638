import type { Insertable, Selectable, Updateable } from 'kysely';
import type { Db, TwoFactorTable } from '../db/schema.ts';

export type TwoFactorRow = Selectable<TwoFactorTable>;
type PendingSecret = Pick<Insertable<TwoFactorTable>, 'account_id' | 'secret_sealed' | 'created_at'>;

/** Stores a secret that is not enabled, unless one is enabled. Earlier failures still count. */
export async function replacePendingSecret(db: Db, row: PendingSecret): Promise<boolean> {
  const { secret_sealed, created_at } = row;
  const inserted = db.insertInto('two_factor').values(row);
  const replaced = inserted.onConflict((conflict) =>
    conflict.column('account_id').doUpdateSet({ secret_sealed, created_at }).where('two_factor.enabled_at', 'is', null),
  );
  return (await replaced.returning('account_id').executeTakeFirst()) !== undefined;
}

export async function selectTwoFactor(db: Db, accountId: string): Promise<TwoFactorRow | undefined> {
  return db.selectFrom('two_factor').selectAll().where('account_id', '=', accountId).executeTakeFirst();
}

/** The second factor, locked so that attempts run one after the other. */
export async function lockTwoFactor(tx: Db, accountId: string): Promise<TwoFactorRow | undefined> {
  return tx.selectFrom('two_factor').selectAll().where('account_id', '=', accountId).forUpdate().executeTakeFirst();
}

export async function updateTwoFactor(tx: Db, accountId: string, changes: Updateable<TwoFactorTable>): Promise<void> {
  await tx.updateTable('two_factor').set(changes).where('account_id', '=', accountId).execute();
}

export async function deleteTwoFactor(tx: Db, accountId: string): Promise<void> {
  await tx.deleteFrom('two_factor').where('account_id', '=', accountId).execute();
}

export async function insertRecoveryCodes(tx: Db, accountId: string, codeHashes: readonly Buffer[]): Promise<void> {
  const rows = codeHashes.map((code_hash) => ({ account_id: accountId, code_hash }));
  await tx.insertInto('recovery_code').values(rows).execute();
}

export async function selectRecoveryCode(db: Db, accountId: string, hash: Buffer): Promise<{ used_at: Date | null } | undefined> {
  const found = db.selectFrom('recovery_code').select('used_at').where('account_id', '=', accountId);
  return found.where('code_hash', '=', hash).executeTakeFirst();
}

export async function spendRecoveryCode(tx: Db, accountId: string, hash: Buffer, now: Date): Promise<boolean> {
  const code = tx.updateTable('recovery_code').set({ used_at: now }).where('account_id', '=', accountId);
  const unused = code.where('code_hash', '=', hash).where('used_at', 'is', null);
  return (await unused.executeTakeFirst()).numUpdatedRows > 0n;
}
