import type { Acting } from '@latchkey/audit/actor';
import { type AuditEvent, type Changes, recordAudit } from '@latchkey/audit/record';
import type { Db } from '../db/schema.ts';

export type Action =
  | 'account.created'
  | 'account.deleted'
  | 'account.signed_in'
  | 'account.sign_in_failed'
  | 'account.proof_failed'
  | 'account.signed_out'
  | 'account.signed_out_everywhere'
  | 'account.session_ended'
  | 'account.two_factor_enabled'
  | 'account.two_factor_disabled'
  | 'account.recovery_code_used'
  | 'account.oidc_linked'
  | 'account.oidc_unlinked'
  | 'account.password_reset'
  | 'account.password_changed'
  | 'account.email_changed'
  | 'account.avatar_changed'
  | 'account.avatar_removed'
  | 'api_key.created'
  | 'api_key.updated'
  | 'api_key.revoked'
  | 'api_key.rotated'
  | 'api_key.application_removed'
  | 'api_key.exchanged'
  | 'trusted_issuer.created'
  | 'trusted_issuer.deleted';

/** An action on an account, or on one of its management keys. */
export function actionOn(
  { accountId, apiKeyId }: { readonly accountId: string; readonly apiKeyId?: string },
  action: Action,
  changes: Changes = {},
): AuditEvent {
  const subject = apiKeyId === undefined ? { kind: 'account', id: accountId } : { kind: 'api_key', id: apiKeyId };
  return { accountId, action, subject, changes } as AuditEvent;
}

/** Writes an action to the audit log, in the transaction of the action. */
export async function recordAction(
  { origin }: Acting<object>,
  tx: Db,
  ...[subject, action, changes]: Parameters<typeof actionOn>
): Promise<void> {
  await recordAudit(tx, origin, actionOn(subject, action, changes));
}

/** The context with a client's actor replaced by its new session. Operators and services stay. */
export function asSession<C extends Acting<object>>(ctx: C, sessionId: string): C {
  const { origin } = ctx;
  if (origin.kind !== 'anonymous' && origin.kind !== 'session') return ctx;
  return { ...ctx, origin: { ...origin, kind: 'session' as const, credentialId: sessionId } };
}
