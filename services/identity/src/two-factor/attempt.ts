import { DomainError } from '@latchkey/kit/errors';
import { decrypt, encrypt } from '@latchkey/kit/secrets';
import type { Kysely } from 'kysely';
import { limitReachedBy, recentFailures } from '../account/recent-failures.ts';
import { type ActingContext, recordAccount } from '../audit/audit.ts';
import type { IdentityContext } from '../context.ts';
import type { IdentityDatabase } from '../db/schema.ts';
import { errors } from '../errors.ts';
import { type GivenCode, hashRecoveryCode, parseCode } from './code-text.ts';
import { judgeCode } from './totp.ts';
import { selectRecoveryCode, spendRecoveryCode, type TwoFactorRow, updateTwoFactor } from './two-factor.store.ts';

/**
 * Runs a transaction that is committed also where it answers a refusal, which is then thrown: the failure that it counted stays counted.
 *
 * @throws the refusal
 */
export async function attempt<T>(
  ctx: IdentityContext,
  run: (tx: Kysely<IdentityDatabase>) => Promise<T | DomainError>,
): Promise<T> {
  const outcome = await ctx.db.transaction().execute(run);
  if (outcome instanceof DomainError) throw outcome;
  return outcome;
}

/**
 * Judges a code and uses it up, or counts the failure (decisions 4 and 9). It must run in {@link attempt}, with `row` locked.
 *
 * Text that can be no code is refused without being counted, and so are the one-time code that was taken last and recovery codes that were used. Once
 * the limit is reached no one-time code is judged. Recovery codes are, since 80 bits can't be guessed: so the owner is not locked out by somebody who
 * knows the password and keeps failing.
 *
 * @returns why the code is refused: `two_factor_code_invalid` or `two_factor_attempts_reached`
 */
export async function spendCode(
  ctx: ActingContext,
  tx: Kysely<IdentityDatabase>,
  row: TwoFactorRow,
  text: string,
): Promise<DomainError | undefined> {
  const code = parseCode(text);
  if (!code) return errors.two_factor_code_invalid();
  const reached = limitReached(ctx, row);
  if (reached && code.kind === 'one-time') return reached;
  const verdict = await takeCode(ctx, tx, row, code);
  if (verdict === 'accepted') return undefined;
  // Who shows it again has not guessed: a form was sent twice.
  if (verdict === 'taken') return reached ?? errors.two_factor_code_invalid();
  if (reached) return reached;
  await countFailure(ctx, tx, row);
  return errors.two_factor_code_invalid();
}

/** The refusal of every further attempt while there are as many recent failures as there may be. */
export function limitReached(ctx: IdentityContext, row: TwoFactorRow): DomainError | undefined {
  const limit = { policy: 'two-factor-failures', max: ctx.twoFactorFailuresMax };
  const reached = limitReachedBy(row.recent_failures, limit, ctx.clock());
  return reached && errors.two_factor_attempts_reached(reached);
}

/** The limit's refusal of an attempt with that code, before anything else is judged of it. As in {@link spendCode}, a recovery code of theirs goes through. */
export async function limitReachedFor(
  ctx: IdentityContext,
  db: Kysely<IdentityDatabase>,
  row: TwoFactorRow,
  text: string | undefined,
): Promise<DomainError | undefined> {
  const { account_id: accountId } = row;
  const reached = limitReached(ctx, row);
  const code = reached && parseCode(text ?? '');
  if (code?.kind !== 'recovery') return reached;
  const theirs = await selectRecoveryCode(db, accountId, hashRecoveryCode(ctx.recoveryCodeKey, accountId, code));
  return theirs?.used_at === null ? undefined : reached;
}

/** Counts a failure. It must not come past the limit, where nothing is judged. */
export async function countFailure(ctx: IdentityContext, tx: Kysely<IdentityDatabase>, row: TwoFactorRow): Promise<void> {
  const now = ctx.clock();
  await updateTwoFactor(tx, row.account_id, { recent_failures: [...recentFailures(row.recent_failures, now), now] });
}

async function takeCode(
  ctx: ActingContext,
  tx: Kysely<IdentityDatabase>,
  row: TwoFactorRow,
  code: GivenCode,
): Promise<'accepted' | 'taken' | 'wrong'> {
  const { account_id: accountId } = row;
  if (code.kind === 'recovery') {
    const hash = hashRecoveryCode(ctx.recoveryCodeKey, accountId, code);
    if (!(await spendRecoveryCode(tx, accountId, hash, ctx.clock())))
      return (await selectRecoveryCode(tx, accountId, hash)) ? 'taken' : 'wrong';
    await recordAccount(ctx, tx, accountId, 'account.recovery_code_used');
    return 'accepted';
  }
  const judged = judgeCode(openSecret(ctx, row), code.text, ctx.clock(), row.last_step);
  if (typeof judged === 'string') return judged;
  await updateTwoFactor(tx, accountId, { last_step: judged.step });
  return 'accepted';
}

/** The secret as it is stored. It opens only for the account that it was sealed for. */
export function sealSecret(ctx: IdentityContext, accountId: string, secret: string): Buffer {
  return encrypt(ctx.twoFactorKey, secret, accountId);
}

function openSecret(ctx: IdentityContext, { account_id, secret_sealed }: TwoFactorRow): string {
  return decrypt(ctx.twoFactorKey, secret_sealed, account_id);
}
