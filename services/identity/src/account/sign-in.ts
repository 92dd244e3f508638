import type { SignInRequest } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { asSession, recordAction } from '../audit/actions.ts';
import { recordFailures } from '../audit/credential-failures.ts';
import type { ActingContext } from '../context.ts';
import type { Db } from '../db/schema.ts';
import { errors } from '../proto-errors.ts';
import { type OpenedSession, openSession, type SessionClient } from '../session/session.ts';
import { attempt, takeSecondFactor } from '../two-factor/take-code.ts';
import { lockAccountShared, selectAccountBy } from './account.store.ts';
import type { SignedIn } from './account.ts';
import { isSignIn } from './account-rules.ts';

const signInTo = (accountId: string) => ({ accountId, action: 'account.sign_in_failed' }) as const;

/**
 * Opens a session. An unknown email, a wrong password and an account without a password get the
 * same error in the same time. The second factor is checked after the password.
 * @throws `sign_in_invalid`, `sign_in_failed`, and what {@link openSessionFor} throws
 */
export async function signIn(ctx: ActingContext, { email, password, ...more }: SignInRequest): Promise<SignedIn> {
  if (!isSignIn(email, password)) throw errors.sign_in_invalid();
  const account = await selectAccountBy(ctx.db, 'email', email);
  const matches = await ctx.passwords.verify(account?.password_hash ?? undefined, password, ctx.call);
  if (!account) throw errors.sign_in_failed();
  if (!matches) {
    ctx.credentialFailures.record({ ...signInTo(account.id), reason: 'wrong_password', origin: ctx.origin });
    throw errors.sign_in_failed();
  }
  const verified = { ...more, accountId: account.id, passwordHash: account.password_hash };
  return { account, session: await openSessionFor(ctx, verified) };
}

export interface VerifiedSignIn extends SessionClient {
  readonly accountId: string;
  readonly code?: string | undefined;
  /** Hash that the password was verified against; undefined for another first factor. */
  readonly passwordHash?: string | null;
  /** OpenID Connect issuer that verified the first factor, for the audit log. */
  readonly issuer?: string | undefined;
  /** Epoch of sign-ins in which the first factor was verified; undefined: just now. */
  readonly generation?: number;
  /** Marks the first factor as used, or throws, in which case no code is used up. */
  readonly useUp?: (tx: Db) => Promise<void>;
}

/**
 * Opens a session after the first factor, and checks the second. The account is locked meanwhile,
 * so that a password reset or a change of the second factor cancels the sign-in. The client's
 * previous session ends: a token planted in its cookie becomes worthless.
 * @throws `sign_in_failed` where the password changed, `oidc_flow_invalid` where the generation
 * changed, `two_factor_required`, `two_factor_code_invalid`, `two_factor_attempts_reached`
 */
export async function openSessionFor(ctx: ActingContext, request: VerifiedSignIn): Promise<OpenedSession> {
  const { accountId, passwordHash, issuer, generation, code, useUp } = request;
  const open = async (tx: Db) => {
    const account = await lockAccountShared(tx, accountId);
    if (!account || (passwordHash !== undefined && passwordHash !== account.password_hash)) return errors.sign_in_failed();
    if (generation !== undefined && generation !== account.sign_in_generation) return errors.oidc_flow_invalid();
    const error = await takeSecondFactor(ctx, tx, accountId, code);
    if (error) return error;
    await useUp?.(tx);
    const opened = await openSession(ctx, tx, accountId, request);
    const by = passwordHash === undefined ? 'oidc' : 'password';
    await recordAction(asSession(ctx, opened.id), tx, { accountId }, 'account.signed_in', { by, issuer });
    return opened;
  };
  return recordFailures(ctx, signInTo(accountId), () => attempt(ctx, open));
}
