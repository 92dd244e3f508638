import type { DomainError } from '@latchkey/kit/errors';
import type { Kysely } from 'kysely';
import { type AccountRow, lockPassword, updatePasswordFailures } from '../account/account.store.ts';
import { limitReachedBy, recentFailures } from '../account/recent-failures.ts';
import type { IdentityContext } from '../context.ts';
import type { IdentityDatabase } from '../db/schema.ts';
import { errors } from '../errors.ts';
import { countFailure, limitReached, limitReachedFor } from './attempt.ts';
import { lockTwoFactor, selectTwoFactor, type TwoFactorRow } from './two-factor.store.ts';

/** What was shown with a session, to do more than a session may. */
export interface Shown {
  readonly password: string;
  /** Undefined means that none was given. */
  readonly code: string | undefined;
}

/** A password that was looked at, and not told of yet: that takes long, so it is done outside of transactions. */
export interface JudgedPassword {
  readonly accountId: string;
  /** What it was looked at against; null means that the account has none. */
  readonly hash: string | null;
  readonly matches: boolean;
  readonly code: string | undefined;
}

/**
 * Looks at the password that somebody with a session shows. Past a limit, that of passwords or that of the second factor, none is hashed.
 *
 * @throws `password_missing`, which is no guess, `password_attempts_reached`, `two_factor_attempts_reached`
 */
export async function judgePassword(ctx: IdentityContext, account: AccountRow, shown: Shown): Promise<JudgedPassword> {
  const { id: accountId, password_hash: hash } = account;
  const row = account.two_factor_enabled ? await selectTwoFactor(ctx.db, accountId) : undefined;
  const reached = (row && (await limitReachedFor(ctx, ctx.db, row, shown.code))) ?? passwordLimitReached(ctx, account);
  if (reached) throw reached;
  if (hash !== null && shown.password === '') throw errors.password_missing();
  const matches = hash === null || (await ctx.passwords.verify(hash, shown.password));
  return { accountId, hash, matches, code: shown.code };
}

/** How a password was settled: refused, or right, with the second factor locked where it is on. */
export type Settled =
  | { readonly refusal: DomainError }
  | { readonly refusal: undefined; readonly guarded: TwoFactorRow | undefined };

/**
 * Says whether a password was right, and counts it for the account where it was wrong, whatever else was shown and from wherever: a session is no place
 * to guess from. With a second factor it counts as a wrong code does, too. Past a limit nobody is told. One that was changed while it was looked at is
 * wrong, and not counted. It must run in `attempt`; the account is locked from then on.
 *
 * @param wrong the refusal of a wrong password
 */
export async function settlePassword(
  ctx: IdentityContext,
  tx: Kysely<IdentityDatabase>,
  { accountId, hash, matches, code }: JudgedPassword,
  wrong: DomainError,
): Promise<Settled> {
  const account = await lockPassword(tx, accountId);
  const row = await lockTwoFactor(tx, accountId);
  const guarded = row?.enabled_at ? row : undefined;
  const codesReached = guarded && (await limitReachedFor(ctx, tx, guarded, code));
  const reached = codesReached ?? (account && passwordLimitReached(ctx, account));
  if (reached) return { refusal: reached };
  if (account?.password_hash !== hash) return { refusal: wrong };
  if (matches) return { refusal: undefined, guarded };
  const now = ctx.clock();
  await updatePasswordFailures(tx, accountId, [...recentFailures(account.password_failures, now), now]);
  if (guarded && !limitReached(ctx, guarded)) await countFailure(ctx, tx, guarded);
  return { refusal: wrong };
}

/** The refusal of every further password while too many were wrong. An account without one has none to guess. */
function passwordLimitReached(
  { passwordFailuresMax: max, clock }: IdentityContext,
  { password_hash, password_failures }: Pick<AccountRow, 'password_hash' | 'password_failures'>,
): DomainError | undefined {
  if (password_hash === null) return undefined;
  const reached = limitReachedBy(password_failures, { policy: 'password-failures', max }, clock());
  return reached && errors.password_attempts_reached(reached);
}
