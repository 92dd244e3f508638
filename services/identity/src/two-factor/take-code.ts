import { runTransaction } from '@latchkey/audit/transaction';
import { decrypt } from '@latchkey/kit/crypto/secrets';
import { DomainError } from '@latchkey/kit/errors/errors';
import { failureLimitReached, withFailure } from '../account/proof-failures.ts';
import { recordAction } from '../audit/actions.ts';
import type { ActingContext, IdentityContext } from '../context.ts';
import type { Db } from '../db/schema.ts';
import { errors } from '../proto-errors.ts';
import { hashRecoveryCode, parseCode, verifyTotp } from './code.ts';
import { lockTwoFactor, selectRecoveryCode, spendRecoveryCode, type TwoFactorRow, updateTwoFactor } from './two-factor.store.ts';

/** Runs a transaction that commits, with the counted failure, before its error is thrown. */
export async function attempt<T>(ctx: IdentityContext, run: (tx: Db) => Promise<T | DomainError>): Promise<T> {
  const outcome = await runTransaction(ctx.db, run);
  if (outcome instanceof DomainError) throw outcome;
  return outcome;
}

/**
 * Checks a code and uses it up, or counts the failure. Must run in {@link attempt} with `row`
 * locked. Malformed and already used codes are rejected without being counted. Over the limit only
 * recovery codes are checked: 80 bits cannot be guessed, and an intruder with the password must not
 * lock the owner out.
 * @returns `two_factor_code_invalid` or `two_factor_attempts_reached`; undefined for a valid code
 */
export async function takeCode(ctx: ActingContext, tx: Db, row: TwoFactorRow, text: string): Promise<DomainError | undefined> {
  const code = parseCode(text);
  if (!code) return errors.two_factor_code_invalid();
  const isRecovery = code.kind === 'recovery';
  const reached = await codeLimitReached(ctx, tx, row);
  if (reached && !isRecovery) return reached;
  const verdict = await (isRecovery ? takeRecoveryCode : takeOneTimeCode)(ctx, tx, row, code.text);
  if (verdict === 'accepted') return undefined;
  if (reached) return reached;
  if (verdict === 'wrong') await countCodeFailure(ctx, tx, row);
  return errors.two_factor_code_invalid();
}

/**
 * Locks the second factor of an account, and takes the code where it is on.
 * @returns `two_factor_required` without a code, and what {@link takeCode} returns
 */
export async function takeSecondFactor(ctx: ActingContext, tx: Db, accountId: string, code: string | undefined) {
  const row = await lockTwoFactor(tx, accountId);
  if (!row?.enabled_at) return undefined;
  return code === undefined ? errors.two_factor_required() : takeCode(ctx, tx, row, code);
}

async function takeOneTimeCode(ctx: ActingContext, tx: Db, row: TwoFactorRow, text: string) {
  const secret = decrypt(ctx.twoFactorKey, row.secret_sealed, row.account_id);
  const verified = verifyTotp(secret, text, ctx.clock(), row.last_step);
  if (typeof verified === 'string') return verified;
  await updateTwoFactor(tx, row.account_id, { last_step: verified });
  return 'accepted';
}

async function takeRecoveryCode(ctx: ActingContext, tx: Db, { account_id: accountId }: TwoFactorRow, text: string) {
  const hash = hashRecoveryCode(ctx.recoveryCodeKey, accountId, text);
  if (!(await spendRecoveryCode(tx, accountId, hash, ctx.clock()))) {
    return (await selectRecoveryCode(tx, accountId, hash)) ? 'used' : 'wrong';
  }
  await recordAction(ctx, tx, { accountId }, 'account.recovery_code_used');
  return 'accepted';
}

/**
 * The rate-limit error of further codes, and of passwords that come with them. An unused recovery
 * code of the account as `text` passes, as in {@link takeCode}.
 */
export async function codeLimitReached(ctx: IdentityContext, db: Db, row: TwoFactorRow, text = '') {
  const reached = failureLimitReached(row.recent_failures, 'two-factor-failures', ctx.twoFactorFailuresMax, ctx.clock());
  if (!reached) return undefined;
  if (parseCode(text)?.kind === 'recovery') {
    const hash = hashRecoveryCode(ctx.recoveryCodeKey, row.account_id, text);
    if ((await selectRecoveryCode(db, row.account_id, hash))?.used_at === null) return undefined;
  }
  return errors.two_factor_attempts_reached(reached);
}

export async function countCodeFailure(ctx: IdentityContext, tx: Db, row: TwoFactorRow): Promise<void> {
  if (await codeLimitReached(ctx, tx, row)) return;
  await updateTwoFactor(tx, row.account_id, { recent_failures: withFailure(row.recent_failures, ctx.clock()) });
}
