import { parseId } from '@latchkey/kit/id';
import type { Kysely } from 'kysely';
import { type AccountRow, lockAccount, selectAccount } from '../account/account.store.ts';
import { type ActingContext, recordAccount, recordFailures } from '../audit/audit.ts';
import type { IdentityContext } from '../context.ts';
import type { IdentityDatabase } from '../db/schema.ts';
import { errors } from '../errors.ts';
import { deleteSessionsOf, holdSession } from '../session/session.store.ts';
import { endEpochs } from '../session/session.ts';
import { attempt, sealSecret, spendCode } from './attempt.ts';
import { createRecoveryCodes, hashRecoveryCode, parseCode } from './code-text.ts';
import { judgePassword, settlePassword } from './owner-password.ts';
import { createTotpSecret, otpauthUrl } from './totp.ts';
import {
  deleteTwoFactor,
  insertRecoveryCodes,
  lockTwoFactor,
  replacePendingSecret,
  type TwoFactorRow,
  updateTwoFactor,
} from './two-factor.store.ts';

/** A session that asks for a change of its account's second factor. It outlives the change; the others don't. */
export interface AskingSession {
  readonly accountId: string;
  readonly sessionId: string;
}

/**
 * Makes a secret, which is good for nothing before it is enabled, and forgets the one that was not.
 *
 * @returns the secret in base32, and as a URL for authenticator apps
 * @throws `account_not_found`, `two_factor_already_enabled`
 */
export async function setUpTwoFactor(ctx: IdentityContext, accountText: string): Promise<{ secret: string; otpauthUrl: string }> {
  const accountId = parseId(accountText);
  const account = accountId && (await selectAccount(ctx.db, accountId));
  if (!account) throw errors.account_not_found();
  const secret = createTotpSecret(ctx.random);
  const row = { account_id: account.id, secret_sealed: sealSecret(ctx, account.id, secret), created_at: ctx.clock() };
  if (!(await replacePendingSecret(ctx.db, row))) throw errors.two_factor_already_enabled();
  return { secret, otpauthUrl: otpauthUrl(secret, account.email) };
}

/**
 * Switches the second factor on for whoever shows a code of the secret. Sessions that somebody else may have opened with the password alone end. The
 * one that asks has to be there still: an owner who has ended all sessions meanwhile, or an operator, meant that one too.
 *
 * @returns the recovery codes, of which only hashes are kept
 * @throws `two_factor_not_set_up`, `two_factor_already_enabled`, `session_invalid`, `two_factor_code_invalid`, `two_factor_attempts_reached`
 */
export async function enableTwoFactor(ctx: ActingContext, asking: AskingSession, code: string): Promise<string[]> {
  const accountId = parseId(asking.accountId);
  if (!accountId) throw errors.two_factor_not_set_up();
  const recoveryCodes = createRecoveryCodes(ctx.random);
  const ended = await attempt(ctx, async (tx) => {
    const row = await lockBoth(tx, accountId);
    if (!row) return errors.two_factor_not_set_up();
    if (row.enabled_at) return errors.two_factor_already_enabled();
    const isAskedByNone = asking.sessionId === '';
    const sessionId = parseId(asking.sessionId);
    if (!isAskedByNone && !(sessionId && (await holdSession(tx, accountId, sessionId)))) return errors.session_invalid();
    const refusal = await spendCode(ctx, tx, row, code);
    if (refusal) return refusal;
    await updateTwoFactor(tx, accountId, { enabled_at: ctx.clock() });
    await insertRecoveryCodes(tx, accountId, recoveryCodes.map(hashOf(ctx, accountId)));
    const others = await deleteSessionsOf(tx, accountId, sessionId);
    await recordAccount(ctx, tx, accountId, 'account.two_factor_enabled', { endedSessions: others.length });
    return others;
  });
  await endEpochs(ctx, ended);
  return recoveryCodes;
}

/**
 * Switches the second factor off for whoever has both. A wrong password is counted, and leaves the code unused.
 *
 * @throws `two_factor_not_enabled`, `two_factor_password_wrong`, `password_missing`, `password_attempts_reached`, `two_factor_code_invalid`, `two_factor_attempts_reached`
 */
export async function disableTwoFactor(
  ctx: ActingContext,
  asking: AskingSession,
  shown: { readonly password: string; readonly code: string },
): Promise<void> {
  const accountId = parseId(asking.accountId);
  const account = accountId ? await selectAccount(ctx.db, accountId) : undefined;
  if (!account?.two_factor_enabled) throw errors.two_factor_not_enabled();
  const ended = await recordFailures(ctx, proofOf(account.id), () => disable(ctx, account, shown, parseId(asking.sessionId)));
  await endEpochs(ctx, ended);
}

const proofOf = (accountId: string) => ({ accountId, action: 'account.proof_failed' }) as const;

/** Answers the sessions that ended by it. */
async function disable(
  ctx: ActingContext,
  account: AccountRow,
  shown: { readonly password: string; readonly code: string },
  keptSessionId: string | undefined,
): Promise<Buffer[]> {
  const judged = await judgePassword(ctx, account, shown);
  return attempt(ctx, async (tx) => {
    const settled = await settlePassword(ctx, tx, judged, errors.two_factor_password_wrong());
    if (settled.refusal) return settled.refusal;
    if (!settled.guarded) return errors.two_factor_not_enabled();
    const refusal = await spendCode(ctx, tx, settled.guarded, shown.code);
    if (refusal) return refusal;
    await deleteTwoFactor(tx, account.id);
    const others = await deleteSessionsOf(tx, account.id, keptSessionId);
    await recordAccount(ctx, tx, account.id, 'account.two_factor_disabled', { endedSessions: others.length });
    return others;
  });
}

/**
 * Uses up a code of an account that has a second factor.
 *
 * @returns whether it has one; where it has none the code is not looked at
 * @throws `two_factor_code_invalid`, `two_factor_attempts_reached`
 */
export async function verifyTwoFactorCode(ctx: ActingContext, accountText: string, code: string): Promise<boolean> {
  const accountId = parseId(accountText);
  if (!accountId) return false;
  const spend = async (tx: Kysely<IdentityDatabase>) => {
    const row = await lockTwoFactor(tx, accountId);
    if (!row?.enabled_at) return false;
    return (await spendCode(ctx, tx, row, code)) ?? true;
  };
  return recordFailures(ctx, proofOf(accountId), () => attempt(ctx, spend));
}

/** Sign-ins hold the account too, so that none opens a session by the rules of before the change. */
async function lockBoth(tx: Kysely<IdentityDatabase>, accountId: string): Promise<TwoFactorRow | undefined> {
  return (await lockAccount(tx, accountId)) ? lockTwoFactor(tx, accountId) : undefined;
}

function hashOf(ctx: IdentityContext, accountId: string) {
  return (shown: string): Buffer => {
    const code = parseCode(shown);
    if (!code) throw new Error('a recovery code that nobody could use');
    return hashRecoveryCode(ctx.recoveryCodeKey, accountId, code);
  };
}
