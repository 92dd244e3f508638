import type { AuditAction } from '@latchkey/contract/audit-actions';
import { newId } from '@latchkey/kit/validation/id';
import type { QueryExecutorProvider } from 'kysely';
import type { Origin } from './actor.ts';
import { addChange } from './announce.ts';
import { countLastHour, insertEntries, lockAction } from './audit.store.ts';
import { addCommitProof } from './transaction.ts';

/** Changed names and values as the account's owner sees them, and never a secret. */
export type Changes = Readonly<Record<string, string | number | boolean | null | readonly string[] | undefined>>;

export interface AuditEvent {
  readonly accountId: string;
  readonly action: AuditAction;
  readonly subject: { readonly kind: 'account' | 'api_key' | 'application' | 'file'; readonly id: string };
  /** Application of a subject that is not an application. */
  readonly applicationId?: string;
  readonly changes?: Changes;
  /** Time of the action, by the database's clock; now unless set. */
  readonly at?: Date;
}

/** Writes changes to the audit log, in the transaction `tx` that makes them. */
export async function recordAudit(tx: QueryExecutorProvider, origin: Origin, ...events: readonly AuditEvent[]): Promise<void> {
  if (events.length === 0) return;
  const entries = events.map((event) => {
    const { accountId, action, subject, changes = {} } = event;
    const applicationId = event.applicationId ?? (subject.kind === 'application' ? subject.id : undefined);
    addChange(tx, accountId, { kind: action.slice(0, action.indexOf('.')), applicationId });
    return { ...event, id: newId(), applicationId, changes: toChangesJson(changes) };
  });
  const xid = await insertEntries(tx, origin, entries);
  addCommitProof(tx, { table: 'audit_entry', id: (entries[0] as { id: string }).id, xid });
}

/**
 * Records actions without effect, such as a failed sign-in, in a separate transaction: at most this
 * many entries an hour of an action and a `reason` in one account.
 */
export async function recordAuditUpTo(
  tx: QueryExecutorProvider,
  origin: Origin,
  event: AuditEvent,
  entriesPerHour: number,
): Promise<void> {
  const { accountId, action, changes: { reason } = {} } = event;
  await lockAction(tx, accountId, action);
  const counted = { accountId, action, reason: typeof reason === 'string' ? reason : null, limit: entriesPerHour };
  if ((await countLastHour(tx, counted)) < entriesPerHour) await recordAudit(tx, origin, event);
}

const TEXT_LENGTH_MAX = 256;
const LIST_LENGTH_MAX = 20;
const JSON_BYTES_MAX = 4_096;

/** Changes as JSON of at most 4 KiB: an entry must never make its change fail. */
function toChangesJson(changes: Changes): string {
  const bounded: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(changes)) {
    if (typeof value === 'string') bounded[name] = truncate(value);
    else if (typeof value === 'object' && value !== null) {
      bounded[name] = value.slice(0, LIST_LENGTH_MAX).map(truncate);
      if (value.length > LIST_LENGTH_MAX) bounded[`${name}Count`] = value.length;
    } else bounded[name] = value;
  }
  const json = JSON.stringify(bounded);
  return Buffer.byteLength(json) > JSON_BYTES_MAX ? '{"omitted":true}' : json;
}

/** `jsonb` rejects NUL and lone surrogates. */
function truncate(text: string): string {
  return text.slice(0, TEXT_LENGTH_MAX).replaceAll('\0', '').toWellFormed();
}
