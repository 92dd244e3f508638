import type { Acting } from '@latchkey/audit/actor';
import type { Changes } from '@latchkey/audit/record';
import { recordAudit } from '@latchkey/audit/record';
import { DomainError } from '@latchkey/kit/errors/errors';
import type { IdentityContext } from '../context.ts';
import type { Db } from '../db/schema.ts';
import type { CredentialFailure } from './credential-failures.ts';

/** Context of use cases that change something: it names the actor for the audit log. */
export type ActingContext = Acting<IdentityContext>;

type Actor = Pick<ActingContext, 'origin'>;

/** Writes an action on an account to the audit log, in the transaction of the action. */
export async function recordAccount(
  { origin }: Actor,
  tx: Db,
  accountId: string,
  action: `account.${string}`,
  changes: Changes = {},
): Promise<void> {
  await recordAudit(tx, origin, { accountId, action, subject: { kind: 'account', id: accountId }, changes });
}

/** Writes an action on a management API key to the audit log, in the transaction of the action. */
export async function recordApiKey(
  { origin }: Actor,
  tx: Db,
  { accountId, id }: { readonly accountId: string; readonly id: string },
  action: `api_key.${string}`,
  changes: Changes,
): Promise<void> {
  await recordAudit(tx, origin, { accountId, action, subject: { kind: 'api_key', id }, changes });
}

const FAILURE_REASONS: ReadonlyMap<string, CredentialFailure['reason']> = new Map([
  ['oidc_password_wrong', 'wrong_password'],
  ['two_factor_password_wrong', 'wrong_password'],
  ['password_attempts_reached', 'too_many_passwords'],
  ['two_factor_code_invalid', 'wrong_code'],
  ['two_factor_attempts_reached', 'too_many_codes'],
]);

/** Runs `act`, and queues an audit entry where it rejects a password or a code. */
export async function recordFailures<T>(
  { credentialFailures, origin }: Pick<ActingContext, 'credentialFailures' | 'origin'>,
  attempt: Pick<CredentialFailure, 'accountId' | 'action'>,
  act: () => Promise<T>,
): Promise<T> {
  try {
    return await act();
  } catch (err) {
    const reason = err instanceof DomainError ? FAILURE_REASONS.get(err.reason) : undefined;
    if (reason) credentialFailures.record({ ...attempt, reason, origin });
    throw err;
  }
}

/** The context with a client's actor replaced by its new session. Operators and services stay. */
export function asSession<C extends Actor>(ctx: C, sessionId: string): C {
  const { origin } = ctx;
  if (origin.kind !== 'anonymous' && origin.kind !== 'session') return ctx;
  return { ...ctx, origin: { ...origin, kind: 'session' as const, credentialId: sessionId } };
}
