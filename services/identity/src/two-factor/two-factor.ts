import { runTransaction } from '@latchkey/audit/transaction';
import { encrypt } from '@latchkey/kit/crypto/secrets';
import { toId } from '@latchkey/kit/validation/id';
import type {
  DisableTwoFactorRequest,
  EnableTwoFactorRequest,
  VerifyTwoFactorCodeRequest,
} from '@latchkey/proto/latchkey/identity/v1/two_factor_pb';
import { lockAccount, lockAccountShared, selectAccount } from '../account/account.store.ts';
import { runAsOwner } from '../account/verify-owner.ts';
import { recordAction } from '../audit/actions.ts';
import { recordFailures } from '../audit/credential-failures.ts';
import type { ActingContext, IdentityContext } from '../context.ts';
import type { Db } from '../db/schema.ts';
import { errors } from '../proto-errors.ts';
import { lockSession } from '../session/session.store.ts';
import { endSessionsOf } from '../session/session.ts';
import { createRecoveryCodes, createTotpSecret, hashRecoveryCode, otpauthUrl } from './code.ts';
import { attempt, takeCode } from './take-code.ts';
import * as store from './two-factor.store.ts';

/**
 * Creates a secret, which has no effect until it is enabled, and forgets an earlier pending one.
 * @returns the secret in base32, and as a URL for authenticator apps
 */
export async function setUpTwoFactor(ctx: IdentityContext, accountText: string) {
  const secret = createTotpSecret();
  return runTransaction(ctx.db, async (tx) => {
    const account = await lockAccountShared(tx, toId(accountText));
    if (!account) throw errors.account_not_found();
    // Bound to the account, so that rows cannot be swapped.
    const secret_sealed = encrypt(ctx.twoFactorKey, secret, account.id);
    const row = { account_id: account.id, secret_sealed, created_at: ctx.clock() };
    if (!(await store.replacePendingSecret(tx, row))) throw errors.two_factor_already_enabled();
    return { secret, otpauthUrl: otpauthUrl(secret, account.email) };
  });
}

/**
 * Turns the second factor on with a code of the secret, and ends the account's other sessions. The
 * session that requests it must not have ended meanwhile.
 * @returns the recovery codes, of which only hashes are stored
 */
export async function enableTwoFactor(ctx: ActingContext, request: EnableTwoFactorRequest): Promise<string[]> {
  const accountId = toId(request.accountId);
  const recoveryCodes = createRecoveryCodes();
  return attempt(ctx, async (tx) => {
    // Locks out sign-ins, which else could open a session without the second factor.
    const row = (await lockAccount(tx, accountId)) && (await store.lockTwoFactor(tx, accountId));
    if (!row) return errors.two_factor_not_set_up();
    if (row.enabled_at) return errors.two_factor_already_enabled();
    const session = { account_id: accountId, id: toId(request.sessionId) };
    if (request.sessionId !== '' && !(await lockSession(tx, session))) return errors.session_invalid();
    const error = await takeCode(ctx, tx, row, request.code);
    if (error) return error;
    await store.updateTwoFactor(tx, accountId, { enabled_at: ctx.clock() });
    const hashes = recoveryCodes.map((code) => hashRecoveryCode(ctx.recoveryCodeKey, accountId, code));
    await store.insertRecoveryCodes(tx, accountId, hashes);
    const endedSessions = await endSessionsOf(ctx, tx, accountId, request.sessionId);
    await recordAction(ctx, tx, { accountId }, 'account.two_factor_enabled', { endedSessions });
    return recoveryCodes;
  });
}

/**
 * Turns the second factor off with password and code, and ends the account's other sessions. A
 * wrong password leaves the code unused.
 * @throws `two_factor_not_enabled`, and what {@link runAsOwner} throws
 */
export async function disableTwoFactor(ctx: ActingContext, request: DisableTwoFactorRequest): Promise<void> {
  const account = await selectAccount(ctx.db, toId(request.accountId));
  if (!account?.two_factor_enabled) throw errors.two_factor_not_enabled();
  await runAsOwner(ctx, account, request, async (tx, _account, twoFactor) =>
    twoFactor ? remove(ctx, tx, account.id, request.sessionId) : errors.two_factor_not_enabled(),
  );
}

/**
 * Turns the second factor off and ends all sessions, for the operator. A pending secret stays.
 * @returns how many sessions ended; undefined where it was off already
 */
export async function turnTwoFactorOff(ctx: ActingContext, accountId: string): Promise<number | undefined> {
  return runTransaction(ctx.db, async (tx) => {
    if (!(await lockAccount(tx, accountId))) throw errors.account_not_found();
    return (await store.lockTwoFactor(tx, accountId))?.enabled_at ? remove(ctx, tx, accountId) : undefined;
  });
}

async function remove(ctx: ActingContext, tx: Db, accountId: string, keptSessionId?: string): Promise<number> {
  await store.deleteTwoFactor(tx, accountId);
  const endedSessions = await endSessionsOf(ctx, tx, accountId, keptSessionId);
  await recordAction(ctx, tx, { accountId }, 'account.two_factor_disabled', { endedSessions });
  return endedSessions;
}

/**
 * Uses up a code of an account that has a second factor.
 * @returns whether it has one; otherwise the code is ignored
 */
export async function verifyTwoFactorCode(ctx: ActingContext, request: VerifyTwoFactorCodeRequest): Promise<boolean> {
  const accountId = toId(request.accountId);
  const take = async (tx: Db) => {
    const row = await store.lockTwoFactor(tx, accountId);
    return row?.enabled_at ? ((await takeCode(ctx, tx, row, request.code)) ?? true) : false;
  };
  return recordFailures(ctx, { accountId, action: 'account.proof_failed' }, () => attempt(ctx, take));
}
