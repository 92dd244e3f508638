import { parseId } from '@latchkey/kit/id';
import { selectAccount, selectPasswordHashShared } from '../account/account.store.ts';
import type { IdentityContext } from '../context.ts';
import { errors } from '../errors.ts';
import { attempt, countFailure, limitReached, limitReachedBefore, spendCode } from '../two-factor/attempt.ts';
import { lockTwoFactor } from '../two-factor/two-factor.store.ts';

/** What an owner shows who is to be more than somebody with a session. */
export interface OwnerProof {
  readonly password: string;
  /** Undefined means that none was given. */
  readonly code: string | undefined;
}

/**
 * Proves the owner of an account by all that it has: the password, and a code of the second factor. With a second factor a wrong password counts as a
 * wrong code does; without, whoever calls has to bound the attempts.
 *
 * @throws `account_not_found`, `oidc_password_wrong`, `two_factor_required`, `two_factor_code_invalid`, `two_factor_attempts_reached`
 */
export async function proveOwner(ctx: IdentityContext, accountText: string, { password, code }: OwnerProof): Promise<void> {
  const accountId = parseId(accountText);
  const account = accountId ? await selectAccount(ctx.db, accountId) : undefined;
  if (!account) throw errors.account_not_found();
  const reached = account.two_factor_enabled ? await limitReachedBefore(ctx, account.id, code ?? '') : undefined;
  if (reached) throw reached;
  const hash = account.password_hash;
  const passwordMatches = hash === null || (await ctx.passwords.verify(hash, password));
  await attempt(ctx, async (tx) => {
    const unchanged = (await selectPasswordHashShared(tx, account.id)) === hash;
    const row = await lockTwoFactor(tx, account.id);
    const guarded = row?.enabled_at ? row : undefined;
    if (!passwordMatches) {
      const refusal = errors.oidc_password_wrong();
      return guarded ? (limitReached(ctx, guarded) ?? countFailure(ctx, tx, guarded, refusal)) : refusal;
    }
    if (!unchanged) return errors.oidc_password_wrong();
    if (!guarded) return undefined;
    return code === undefined ? errors.two_factor_required() : spendCode(ctx, tx, guarded, code);
  });
}
