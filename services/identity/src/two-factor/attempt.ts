import { DomainError } from '@latchkey/kit/errors';
import { decrypt, encrypt } from '@latchkey/kit/secrets';
import type { Kysely } from 'kysely';
import type { IdentityContext } from '../context.ts';
import type { IdentityDatabase } from '../db/schema.ts';
import { errors } from '../errors.ts';
import { type GivenCode, hashRecoveryCode, parseCode } from './code-text.ts';
import { judgeCode } from './totp.ts';
import {
  selectRecoveryCode,
  selectTwoFactor,
  spendRecoveryCode,
  type TwoFactorRow,
  updateTwoFactor,
} from './two-factor.store.ts';

/** A failure counts for so long (decisions 9). */
const WINDOW_MS = 15 * 60_000;

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
  ctx: IdentityContext,
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
  return reached ?? countFailure(ctx, tx, row, errors.two_factor_code_invalid());
}

/** The refusal of every further attempt while there are as many recent failures as there may be. */
export function limitReached(ctx: IdentityContext, row: TwoFactorRow): DomainError | undefined {
  const now = ctx.clock();
  const blocking = recentFailures(row, now).at(-ctx.twoFactorFailuresMax);
  if (!blocking) return undefined;
  const retryAfterSeconds = Math.max(1, Math.ceil((blocking.getTime() + WINDOW_MS - now.getTime()) / 1000));
  return errors.two_factor_attempts_reached({
    policy: 'two-factor-failures',
    limit: String(ctx.twoFactorFailuresMax),
    windowSeconds: String(WINDOW_MS / 1000),
    remaining: '0',
    retryAfterSeconds: String(retryAfterSeconds),
  });
}

/**
 * The limit's refusal before anything costly is done for an attempt: {@link spendCode} and {@link limitReached} say so again under the lock. As there, a
 * recovery code that the account has goes through.
 */
export async function limitReachedBefore(
  ctx: IdentityContext,
  accountId: string,
  text: string,
): Promise<DomainError | undefined> {
  const row = await selectTwoFactor(ctx.db, accountId);
  const reached = row && limitReached(ctx, row);
  const code = reached && parseCode(text);
  if (code?.kind !== 'recovery') return reached;
  const theirs = await selectRecoveryCode(ctx.db, accountId, hashRecoveryCode(ctx.recoveryCodeKey, accountId, code));
  return theirs?.used_at === null ? undefined : reached;
}

/** Counts a failure, which never makes more of them than the limit: past it nothing is judged. Answers the refusal that it was given. */
export async function countFailure(
  ctx: IdentityContext,
  tx: Kysely<IdentityDatabase>,
  row: TwoFactorRow,
  refusal: DomainError,
): Promise<DomainError> {
  const now = ctx.clock();
  await updateTwoFactor(tx, row.account_id, { recent_failures: [...recentFailures(row, now), now] });
  return refusal;
}

async function takeCode(
  ctx: IdentityContext,
  tx: Kysely<IdentityDatabase>,
  row: TwoFactorRow,
  code: GivenCode,
): Promise<'accepted' | 'taken' | 'wrong'> {
  const { account_id: accountId } = row;
  if (code.kind === 'recovery') {
    const hash = hashRecoveryCode(ctx.recoveryCodeKey, accountId, code);
    if (await spendRecoveryCode(tx, accountId, hash, ctx.clock())) return 'accepted';
    return (await selectRecoveryCode(tx, accountId, hash)) ? 'taken' : 'wrong';
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

/** The failures that count, oldest first. Clocks of processes may differ: one of the future counts. */
function recentFailures(row: TwoFactorRow, now: Date): Date[] {
  const recent = row.recent_failures.filter((at) => at.getTime() > now.getTime() - WINDOW_MS);
  return recent.sort((a, b) => a.getTime() - b.getTime());
}
