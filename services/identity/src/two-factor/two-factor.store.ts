import type { Insertable, Kysely, Selectable, Updateable } from 'kysely';
import type { IdentityDatabase, TwoFactorTable } from '../db/schema.ts';

export type TwoFactorRow = Selectable<TwoFactorTable>;

/** Puts a secret that is not enabled in the place of another that is not; whether it could. Failures of before go on counting. */
export async function replacePendingSecret(
  db: Kysely<IdentityDatabase>,
  { account_id, secret_sealed, created_at }: Pick<Insertable<TwoFactorTable>, 'account_id' | 'secret_sealed' | 'created_at'>,
): Promise<boolean> {
  const row = await db
    .insertInto('two_factor')
    .values({ account_id, secret_sealed, created_at })
    .onConflict((conflict) =>
      conflict.column('account_id').doUpdateSet({ secret_sealed, created_at }).where('two_factor.enabled_at', 'is', null),
    )
    .returning('account_id')
    .executeTakeFirst();
  return row !== undefined;
}

/** The account's second factor with its row locked until the transaction ends: attempts are judged one after the other. */
export async function lockTwoFactor(tx: Kysely<IdentityDatabase>, accountId: string): Promise<TwoFactorRow | undefined> {
  return tx.selectFrom('two_factor').selectAll().where('account_id', '=', accountId).forUpdate().executeTakeFirst();
}

/** The account's second factor without its lock: what is decided by it is to be looked at again under the lock. */
export async function selectTwoFactor(db: Kysely<IdentityDatabase>, accountId: string): Promise<TwoFactorRow | undefined> {
  return db.selectFrom('two_factor').selectAll().where('account_id', '=', accountId).executeTakeFirst();
}

export async function updateTwoFactor(
  tx: Kysely<IdentityDatabase>,
  accountId: string,
  changes: Updateable<TwoFactorTable>,
): Promise<void> {
  await tx.updateTable('two_factor').set(changes).where('account_id', '=', accountId).execute();
}

/** Removes the second factor with its recovery codes; whether there was one. */
export async function deleteTwoFactor(tx: Kysely<IdentityDatabase>, accountId: string): Promise<boolean> {
  const row = await tx.deleteFrom('two_factor').where('account_id', '=', accountId).returning('account_id').executeTakeFirst();
  return row !== undefined;
}

export async function insertRecoveryCodes(
  tx: Kysely<IdentityDatabase>,
  accountId: string,
  codeHashes: readonly Buffer[],
): Promise<void> {
  const rows = codeHashes.map((code_hash) => ({ account_id: accountId, code_hash }));
  await tx.insertInto('recovery_code').values(rows).execute();
}

/** A recovery code of an account; `used_at` is null until it is used. */
export async function selectRecoveryCode(
  db: Kysely<IdentityDatabase>,
  accountId: string,
  codeHash: Buffer,
): Promise<{ used_at: Date | null } | undefined> {
  const found = db.selectFrom('recovery_code').select('used_at').where('account_id', '=', accountId);
  return found.where('code_hash', '=', codeHash).executeTakeFirst();
}

/** Uses a recovery code up; whether the account had it unused. */
export async function spendRecoveryCode(
  tx: Kysely<IdentityDatabase>,
  accountId: string,
  codeHash: Buffer,
  now: Date,
): Promise<boolean> {
  const row = await tx
    .updateTable('recovery_code')
    .set({ used_at: now })
    .where('account_id', '=', accountId)
    .where('code_hash', '=', codeHash)
    .where('used_at', 'is', null)
    .returning('account_id')
    .executeTakeFirst();
  return row !== undefined;
}
