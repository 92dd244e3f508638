import { parseId } from '@latchkey/kit/id';
import { type AccountRow, selectAccount, selectSignInBasisShared } from '../account/account.store.ts';
import { type ActingContext, recordFailures } from '../audit/audit.ts';
import type { IdentityContext } from '../context.ts';
import { errors } from '../errors.ts';
import { selectSessionOpening } from '../session/session.store.ts';
import { attempt, spendCode } from '../two-factor/attempt.ts';
import { judgePassword, type Shown, settlePassword } from '../two-factor/owner-password.ts';

/** A session counts as just opened for so long. */
const FRESH_MS = 10 * 60_000;

/** What an owner shows who is to be more than somebody with a session. */
export interface OwnerProof extends Shown {
  /** The session that asks. */
  readonly sessionId: string;
}

/**
 * Proves the owner of an account by all that it has: the password, and a code of the second factor. An owner without a password has just signed in at an
 * issuer, also where there is a second factor: whoever has found a session could have switched that on.
 *
 * @returns the generation of sign-ins that it was proven in
 * @throws `account_not_found`, `session_invalid`, `oidc_session_too_old`, `oidc_password_wrong`, `password_missing`, `password_attempts_reached`, `two_factor_required`,
 * `two_factor_code_invalid`, `two_factor_attempts_reached`
 */
export async function proveOwner(ctx: ActingContext, accountText: string, proof: OwnerProof): Promise<number> {
  const accountId = parseId(accountText);
  const account = accountId ? await selectAccount(ctx.db, accountId) : undefined;
  if (!account) throw errors.account_not_found();
  if (account.password_hash === null) await checkFresh(ctx, account.id, proof.sessionId);
  return recordFailures(ctx, { accountId: account.id, action: 'account.proof_failed' }, () => prove(ctx, account, proof));
}

async function prove(ctx: ActingContext, account: AccountRow, proof: OwnerProof): Promise<number> {
  const judged = await judgePassword(ctx, account, proof);
  return attempt(ctx, async (tx) => {
    const settled = await settlePassword(ctx, tx, judged, errors.oidc_password_wrong());
    if (settled.refusal) return settled.refusal;
    const { guarded } = settled;
    if (guarded && proof.code === undefined) return errors.two_factor_required();
    const refusal = guarded && (await spendCode(ctx, tx, guarded, proof.code ?? ''));
    return refusal ?? (await selectSignInBasisShared(tx, account.id))?.sign_in_generation ?? errors.account_not_found();
  });
}

/** A session may have been taken from its owner; one that was just opened was most likely opened by them. */
async function checkFresh(ctx: IdentityContext, accountId: string, sessionText: string): Promise<void> {
  const sessionId = parseId(sessionText);
  const openedAt = sessionId && (await selectSessionOpening(ctx.db, accountId, sessionId));
  if (!openedAt) throw errors.session_invalid();
  if (openedAt.getTime() <= ctx.clock().getTime() - FRESH_MS) throw errors.oidc_session_too_old();
}
