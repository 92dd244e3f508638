import { FRESH_SESSION_MINUTES } from '@latchkey/contract/limits';
import type { DomainError } from '@latchkey/kit/errors/errors';
import { toId } from '@latchkey/kit/validation/id';
import type { ChangePasswordRequest } from '@latchkey/proto/latchkey/identity/v1/credential_pb';
import { recordFailures } from '../audit/credential-failures.ts';
import type { ActingContext, IdentityContext } from '../context.ts';
import type { Db } from '../db/schema.ts';
import { errors } from '../proto-errors.ts';
import { lockSession } from '../session/session.store.ts';
import { attempt, codeLimitReached, countCodeFailure, takeCode } from '../two-factor/take-code.ts';
import { lockTwoFactor, selectTwoFactor, type TwoFactorRow } from '../two-factor/two-factor.store.ts';
import { type Account, type AccountRow, lockAccount, updateAccount } from './account.store.ts';
import { getAccount } from './account.ts';
import { failureLimitReached, PASSWORD_FAILURES_MAX, withFailure } from './proof-failures.ts';

/** A session of an account without a password counts as a fresh sign-in for this long. */
const FRESH_MS = FRESH_SESSION_MINUTES * 60_000;

type OwnerProof = Pick<ChangePasswordRequest, 'password' | 'code'>;

type OwnersChange<T> = (tx: Db, current: AccountRow, twoFactor: TwoFactorRow | undefined) => Promise<T | DomainError>;

/**
 * Runs a transaction for what a session alone must not do, such as linking. An account without a
 * password needs a fresh session, also where it has a second factor, which an
 * intruder with a session could have turned on.
 * @throws `account_not_found`, `oidc_session_too_old`, and what {@link runAsOwner} throws
 */
export async function runAsVerifiedOwner<T>(
  ctx: ActingContext,
  proof: OwnerProof & { readonly accountId: string; readonly sessionId: string },
  run: OwnersChange<T>,
): Promise<T> {
  const account = await getAccount(ctx, proof.accountId);
  if (account.password_hash === null) await requireFreshSession(ctx, account.id, proof.sessionId);
  return runAsOwner(ctx, account, proof, run);
}

async function requireFreshSession(ctx: IdentityContext, account_id: string, sessionText: string): Promise<void> {
  const session = await lockSession(ctx.db, { account_id, id: toId(sessionText) });
  if (!session) throw errors.session_invalid();
  if (session.created_at.getTime() <= ctx.clock().getTime() - FRESH_MS) throw errors.oidc_session_too_old();
}

/**
 * Runs a transaction for the owner of an account, verified by password and, where it is on, second
 * factor. Wrong passwords count for the account and, like wrong codes, for its second factor. Over
 * either limit no password is verified.
 * @param run gets the locked account, and its second factor where that is on
 * @throws `session_invalid`, `password_missing`, `owner_password_wrong`,
 * `password_attempts_reached`, `two_factor_required`, `two_factor_code_invalid`,
 * `two_factor_attempts_reached`
 */
export async function runAsOwner<T>(ctx: ActingContext, account: Account, proof: OwnerProof, run: OwnersChange<T>): Promise<T> {
  return recordFailures(ctx, { accountId: account.id, action: 'account.proof_failed' }, async () => {
    const matches = await verifyPassword(ctx, account, proof);
    return attempt(ctx, async (tx) => {
      const current = await lockAccount(tx, account.id);
      const row = await lockTwoFactor(tx, account.id);
      const twoFactor = row?.enabled_at ? row : undefined;
      if (!current) return errors.session_invalid();
      const reached = await limitReached(ctx, tx, current, twoFactor, proof);
      if (reached) return reached;
      // Changed since it was verified: wrong, but no guess.
      if (current.password_hash !== account.password_hash) return errors.owner_password_wrong();
      if (!matches) {
        await updateAccount(tx, account.id, { password_failures: withFailure(current.password_failures, ctx.clock()) });
        if (twoFactor) await countCodeFailure(ctx, tx, twoFactor);
        return errors.owner_password_wrong();
      }
      if (twoFactor && proof.code === undefined) return errors.two_factor_required();
      const error = twoFactor && (await takeCode(ctx, tx, twoFactor, proof.code ?? ''));
      return error ?? run(tx, current, twoFactor);
    });
  });
}

/** Outside the transaction, as it takes long. True for an account without a password. */
async function verifyPassword(ctx: ActingContext, account: Account, proof: OwnerProof): Promise<boolean> {
  const twoFactor = account.two_factor_enabled ? await selectTwoFactor(ctx.db, account.id) : undefined;
  const reached = await limitReached(ctx, ctx.db, account, twoFactor, proof);
  if (reached) throw reached;
  if (account.password_hash === null) return true;
  if (proof.password === '') throw errors.password_missing();
  return ctx.passwords.verify(account.password_hash, proof.password, ctx.call);
}

async function limitReached(
  ctx: IdentityContext,
  db: Db,
  account: AccountRow,
  twoFactor: TwoFactorRow | undefined,
  { code }: OwnerProof,
) {
  const codesReached = twoFactor && (await codeLimitReached(ctx, db, twoFactor, code));
  if (codesReached || account.password_hash === null) return codesReached;
  const reached = failureLimitReached(account.password_failures, 'password-failures', PASSWORD_FAILURES_MAX, ctx.clock());
  return reached && errors.password_attempts_reached(reached);
}
