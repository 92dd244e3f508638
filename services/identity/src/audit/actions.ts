import type { Acting } from '@latchkey/audit/actor';
import { type AuditEvent, type Changes, recordAudit } from '@latchkey/audit/record';
import type { AuditAction } from '@latchkey/contract/audit-actions';
import type { Db } from '../db/schema.ts';

export function actionOn(
  { accountId, apiKeyId }: { readonly accountId: string; readonly apiKeyId?: string },
  action: AuditAction,
  changes: Changes = {},
): AuditEvent {
  const subject = apiKeyId === undefined ? { kind: 'account', id: accountId } : { kind: 'api_key', id: apiKeyId };
  return { accountId, action, subject, changes } as AuditEvent;
}

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
