import type { DomainError } from '@latchkey/kit/errors';
import type { Kysely } from 'kysely';
import { type ActingContext, asSession, recordAccount, recordFailures } from '../audit/audit.ts';
import type { IdentityDatabase } from '../db/schema.ts';
import { errors } from '../errors.ts';
import { endSessionOfToken, type OpenedSession, openSession } from '../session/session.ts';
import { attempt, spendCode } from '../two-factor/attempt.ts';
import { lockTwoFactor } from '../two-factor/two-factor.store.ts';
import { selectAccountByEmail, selectSignInBasisShared } from './account.store.ts';
import { type SignedIn, toAccount } from './account.ts';
import { isSignIn } from './account-rules.ts';

/** What somebody shows who wants a session. */
export interface SignInRequest {
  readonly email: string;
  readonly password: string;
  /** Undefined means that none was given. */
  readonly code: string | undefined;
  /** Token that the client has in its cookie; empty for none. */
  readonly previousSessionToken: string;
}

/**
 * Opens a session. An unknown email and a wrong password are one answer, in one time, as is the password of an account that has none (decisions 4).
 * The second factor is looked at only after the password.
 *
 * @throws `sign_in_invalid`, `sign_in_failed`, `two_factor_required`, `two_factor_code_invalid`, `two_factor_attempts_reached`
 */
export async function signIn(ctx: ActingContext, { email, password, ...shown }: SignInRequest): Promise<SignedIn> {
  if (!isSignIn(email, password)) throw errors.sign_in_invalid();
  const row = await selectAccountByEmail(ctx.db, email);
  const matches = await ctx.passwords.verify(row?.password_hash ?? undefined, password);
  if (row && !matches) ctx.failedAttempts.record({ ...signInTo(row.id), reason: 'wrong_password', origin: ctx.origin });
  if (!row || !matches) throw errors.sign_in_failed();
  const session = await openSessionOf(ctx, { accountId: row.id, passwordHash: row.password_hash, ...shown });
  return { account: toAccount(row), session };
}

/** Whose session to open, and what was shown for it. */
export interface SessionRequest extends Pick<SignInRequest, 'code' | 'previousSessionToken'> {
  readonly accountId: string;
  /** The hash that the password was verified against. Undefined means that something else than the password was shown. */
  readonly passwordHash?: string | null;
  /** The OpenID Connect issuer that showed who it is, for the audit log. */
  readonly issuer?: string | undefined;
  /** The generation of sign-ins that the first factor was shown in. Undefined means that it was shown right now. */
  readonly generation?: number;
  /** Makes what was shown before good for nothing any more, or throws where it is, and then no code is used up. */
  readonly useUp?: (tx: Kysely<IdentityDatabase>) => Promise<void>;
}

/**
 * Opens a session for whoever has shown the first factor, and asks for the second where the account has one. The account can't change meanwhile:
 * after a reset of the password or a change of the second factor no session is opened by what held before. The session that the client had ends, so
 * that a token which somebody planted in the cookie is worth nothing.
 *
 * @throws `sign_in_failed` where the password was changed or the account is gone, `oidc_flow_invalid` where sign-ins of that generation came to nothing
 * meanwhile, `two_factor_required`, `two_factor_code_invalid`, `two_factor_attempts_reached`
 */
export async function openSessionOf(ctx: ActingContext, request: SessionRequest): Promise<OpenedSession> {
  const opening = (tx: Kysely<IdentityDatabase>) => open(ctx, tx, request);
  const session = await recordFailures(ctx, signInTo(request.accountId), () => attempt(ctx, opening));
  await endSessionOfToken(ctx, request.previousSessionToken);
  ctx.sessionSweeper.sweep();
  return session;
}

const signInTo = (accountId: string) => ({ accountId, action: 'account.sign_in_failed' }) as const;

async function open(
  ctx: ActingContext,
  tx: Kysely<IdentityDatabase>,
  { accountId, passwordHash, issuer, generation, code, useUp }: SessionRequest,
): Promise<OpenedSession | DomainError> {
  const current = await selectSignInBasisShared(tx, accountId);
  if (!current || (passwordHash !== undefined && passwordHash !== current.password_hash)) return errors.sign_in_failed();
  if (generation !== undefined && generation !== current.sign_in_generation) return errors.oidc_flow_invalid();
  const refusal = await checkSecondFactor(ctx, tx, accountId, code);
  if (refusal) return refusal;
  await useUp?.(tx);
  const opened = await openSession(ctx, tx, accountId);
  const by = passwordHash === undefined ? 'oidc' : 'password';
  await recordAccount(asSession(ctx, opened.id), tx, accountId, 'account.signed_in', {
    by,
    ...(issuer !== undefined && { issuer }),
  });
  return opened;
}

async function checkSecondFactor(
  ctx: ActingContext,
  tx: Kysely<IdentityDatabase>,
  accountId: string,
  code: string | undefined,
): Promise<DomainError | undefined> {
  const row = await lockTwoFactor(tx, accountId);
  if (!row?.enabled_at) return undefined;
  return code === undefined ? errors.two_factor_required() : spendCode(ctx, tx, row, code);
}
