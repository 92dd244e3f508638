import { sql } from 'kysely';
import { assignmentsOf, type Db, valuesOf } from '../db/schema.ts';

export interface TwoFactorRow {
  readonly account_id: string;
  readonly secret_sealed: Buffer;
  readonly enabled_at: Date | null;
  readonly last_step: number | null;
  readonly recent_failures: readonly Date[];
  readonly created_at: Date;
}
type PendingSecret = Pick<TwoFactorRow, 'account_id' | 'secret_sealed' | 'created_at'>;

/** Stores a secret that is not enabled, unless one is enabled. Earlier failures still count. */
export async function replacePendingSecret(db: Db, row: PendingSecret): Promise<boolean> {
  const { numAffectedRows = 0n } = await sql`
    insert into two_factor ${valuesOf(row)} on conflict (account_id) do update
    set secret_sealed = excluded.secret_sealed, created_at = excluded.created_at where two_factor.enabled_at is null`.execute(db);
  return numAffectedRows > 0n;
}

export async function selectTwoFactor(db: Db, accountId: string): Promise<TwoFactorRow | undefined> {
  return (await sql<TwoFactorRow>`select * from two_factor where account_id = ${accountId}`.execute(db)).rows[0];
}

/** The second factor, locked so that attempts run one after the other. */
export async function lockTwoFactor(tx: Db, accountId: string): Promise<TwoFactorRow | undefined> {
  return (await sql<TwoFactorRow>`select * from two_factor where account_id = ${accountId} for update`.execute(tx)).rows[0];
}

export async function updateTwoFactor(tx: Db, accountId: string, changes: Partial<TwoFactorRow>): Promise<void> {
  await sql`update two_factor set ${assignmentsOf(changes)} where account_id = ${accountId}`.execute(tx);
}

export async function deleteTwoFactor(tx: Db, accountId: string): Promise<void> {
  await sql`delete from two_factor where account_id = ${accountId}`.execute(tx);
}

export async function insertRecoveryCodes(tx: Db, accountId: string, codeHashes: readonly Buffer[]): Promise<void> {
  await sql`
    insert into recovery_code (account_id, code_hash) select ${accountId}::uuid, unnest(${codeHashes}::bytea[])`.execute(tx);
}

export async function selectRecoveryCode(db: Db, accountId: string, hash: Buffer): Promise<{ used_at: Date | null } | undefined> {
  const { rows } = await sql<{ used_at: Date | null }>`
    select used_at from recovery_code where account_id = ${accountId} and code_hash = ${hash}`.execute(db);
  return rows[0];
}

export async function spendRecoveryCode(tx: Db, accountId: string, hash: Buffer, now: Date): Promise<boolean> {
  const { numAffectedRows = 0n } = await sql`
    update recovery_code set used_at = ${now}
    where account_id = ${accountId} and code_hash = ${hash} and used_at is null`.execute(tx);
  return numAffectedRows > 0n;
}
