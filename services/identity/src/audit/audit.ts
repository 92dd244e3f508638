import type { Acting } from '@latchkey/audit/actor';
import type { Changes } from '@latchkey/audit/record';
import { recordAudit } from '@latchkey/audit/record';
import { DomainError } from '@latchkey/kit/errors';
import type { Kysely } from 'kysely';
import type { IdentityContext } from '../context.ts';
import type { IdentityDatabase } from '../db/schema.ts';
import type { FailedAttempt } from './failed-attempts.ts';

/** Use cases that change something: they know who asks. */
export type ActingContext = Acting<IdentityContext>;

/** What is done to accounts, by the name that the audit log has for it. */
export type AccountAction =
  | 'account.created'
  | 'account.signed_in'
  | 'account.signed_out'
  | 'account.signed_out_everywhere'
  | 'account.two_factor_enabled'
  | 'account.two_factor_disabled'
  | 'account.recovery_code_used'
  | 'account.password_reset'
  | 'account.oidc_linked'
  | 'account.oidc_unlinked'
  | 'account.avatar_changed';

/** What is done to management API keys. */
export type ApiKeyAction = 'api_key.created' | 'api_key.updated' | 'api_key.revoked';

type Tx = Kysely<IdentityDatabase>;

/** Writes to the audit log what is done to an account, in the transaction that does it. */
export async function recordAccount(
  { origin }: Pick<ActingContext, 'origin'>,
  tx: Tx,
  accountId: string,
  action: AccountAction,
  changes: Changes = {},
): Promise<void> {
  await recordAudit(tx, origin, { accountId, action, subject: { kind: 'account', id: accountId }, changes });
}

/** Writes to the audit log what is done to a key, likewise. */
export async function recordApiKey(
  { origin }: Pick<ActingContext, 'origin'>,
  tx: Tx,
  { accountId, id }: { readonly accountId: string; readonly id: string },
  action: ApiKeyAction,
  changes: Changes,
): Promise<void> {
  await recordAudit(tx, origin, { accountId, action, subject: { kind: 'api_key', id }, changes });
}

/** Refusals that the owner of an account wants to know of, by their reason. */
const FAILURES: ReadonlyMap<string, FailedAttempt['reason']> = new Map([
  ['oidc_password_wrong', 'wrong_password'],
  ['two_factor_password_wrong', 'wrong_password'],
  ['password_attempts_reached', 'too_many_passwords'],
  ['two_factor_code_invalid', 'wrong_code'],
  ['two_factor_attempts_reached', 'too_many_codes'],
]);

/**
 * Does what takes a password or a code, of somebody who has shown the first factor of the account or has a session of it. Where that was not good, it is
 * written to the audit log, behind the scenes.
 *
 * @throws what `act` throws
 */
export async function recordFailures<T>(
  { failedAttempts, origin }: Pick<ActingContext, 'failedAttempts' | 'origin'>,
  attempt: Pick<FailedAttempt, 'accountId' | 'action'>,
  act: () => Promise<T>,
): Promise<T> {
  try {
    return await act();
  } catch (err) {
    const reason = err instanceof DomainError ? FAILURES.get(err.reason) : undefined;
    if (reason) failedAttempts.record({ ...attempt, reason, origin });
    throw err;
  }
}

/**
 * Who opens a session is that session from then on, so that what it does later can be told to be of this sign-in. Operators and services stay what they are.
 */
export function asSession<C extends Pick<ActingContext, 'origin'>>(ctx: C, sessionId: string): C {
  const { origin } = ctx;
  return origin.kind === 'anonymous' || origin.kind === 'session'
    ? { ...ctx, origin: { ...origin, kind: 'session' as const, credentialId: sessionId } }
    : ctx;
}
