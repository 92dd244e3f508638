import type { QueryExecutorProvider } from 'kysely';
import { newId } from '../id.ts';
import type { Origin } from './actor.ts';
import { countLastHour, insertEntries, lockAction, type NewEntryRow } from './audit-entry.store.ts';
import { type Changes, toChangesJson } from './changes.ts';

/** What was done. */
export interface AuditEvent {
  /** Account that it was done in, a UUID. */
  readonly accountId: string;
  /** Stable, in the form `application.created`. */
  readonly action: string;
  readonly subject: { readonly kind: 'account' | 'api_key' | 'application' | 'file'; readonly id: string };
  /** Application that it belongs to; the subject itself where that is one. */
  readonly applicationId?: string;
  readonly changes?: Changes;
  /** When it was, by the clock of the database, of what is written later; now unless given. */
  readonly at?: Date;
}

/**
 * Writes to the audit log what is done, in the transaction that does it: neither is there without the other.
 *
 * @param tx the transaction of the change
 */
export async function recordAudit(tx: QueryExecutorProvider, origin: Origin, ...events: readonly AuditEvent[]): Promise<void> {
  if (events.length > 0)
    await insertEntries(
      tx,
      events.map((event) => toRow(origin, event)),
    );
}

/**
 * Writes what is no change, and may be tried as often as somebody likes: of one action there are so many entries an hour for an account, exactly, and as
 * many for each `reason` that its changes name, so that what anybody may do does not hide what takes more.
 *
 * @param tx a transaction of its own
 */
export async function recordAuditUpTo(
  tx: QueryExecutorProvider,
  origin: Origin,
  event: AuditEvent,
  entriesPerHour: number,
): Promise<void> {
  const { accountId, action, changes: { reason } = {} } = event;
  await lockAction(tx, accountId, action);
  const alike = { accountId, action, reason: typeof reason === 'string' ? reason : undefined };
  if ((await countLastHour(tx, alike, entriesPerHour)) < entriesPerHour) await recordAudit(tx, origin, event);
}

function toRow(origin: Origin, { accountId, action, subject, applicationId, changes = {}, at }: AuditEvent): NewEntryRow {
  return {
    id: newId(),
    account_id: accountId,
    action,
    actor: origin.kind,
    credential_id: origin.credentialId,
    address: origin.address,
    request_id: origin.requestId,
    subject: subject.kind,
    subject_id: subject.id,
    application_id: applicationId ?? (subject.kind === 'application' ? subject.id : undefined),
    changes: toChangesJson(changes),
    at,
  };
}
