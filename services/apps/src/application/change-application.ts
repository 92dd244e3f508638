import type { Acting } from '@latchkey/audit/actor';
import { type Changes, recordAudit } from '@latchkey/audit/record';
import { runTransaction } from '@latchkey/audit/transaction';
import type { AuditAction } from '@latchkey/contract/audit-actions';
import type { AppsContext } from '../context.ts';
import type { Db } from '../db/schema.ts';
import { type EventBody, logEvents, nextSequence } from '../event/event-log.ts';
import { errors } from '../proto-errors.ts';
import { type ApplicationRow, type ApplicationValues, lockApplication, updateApplication } from './application.store.ts';
import { type ApplicationRef, parseRef } from './application-ref.ts';

/** The entry in the audit log of a change. */
export function describeChange({ accountId, applicationId: id }: ApplicationRef, action: AuditAction, changes: Changes) {
  return { accountId, action, subject: { kind: 'application' as const, id }, changes };
}

export interface ApplicationChange {
  readonly tx: Db;
  /** The application before the change, whose row is locked. */
  readonly row: ApplicationRow;
  /**
   * Stores new values and adds the event to the log. One UPDATE stores the values and the event's
   * `sequence`, so that the row gets one new version. At most one event for live clients a change.
   */
  update(values: Omit<ApplicationValues, 'last_sequence'>, event: EventBody | undefined, now: Date): Promise<void>;
  /** Adds the event of a change that deletes the row. */
  addEvent(event: EventBody, now: Date): Promise<void>;
  record(action: AuditAction, changes: Changes): Promise<void>;
}

/**
 * Changes one application in a transaction that locks its row, so that concurrent changes follow
 * one another. Events are delivered after the commit.
 *
 * @throws `application_not_found`, and `queue_full` if too many changes wait
 */
export async function changeApplication<T>(
  ctx: Acting<AppsContext>,
  given: ApplicationRef,
  apply: (change: ApplicationChange) => Promise<T>,
): Promise<T> {
  const ref = parseRef(given);
  const key = `${ref.accountId}/${ref.applicationId}`;
  ctx.writes.check(key);
  let [hasEvent, isForClients] = [false, false];
  const changeLocked = async (tx: Db) => {
    const row = await lockApplication(tx, ref.accountId, ref.applicationId);
    if (!row) throw errors.application_not_found();
    const addEvent = async (event: EventBody, now: Date) => {
      await logEvents(tx, [row], event, now);
      hasEvent = true;
      isForClients ||= nextSequence(row, event) !== null;
    };
    return apply({
      tx,
      row,
      async update(values, event, now) {
        const sequence = event && nextSequence(row, event);
        await updateApplication(tx, row.id, { ...values, ...(sequence && { last_sequence: sequence }) });
        if (event) await addEvent(event, now);
      },
      addEvent,
      record: (action, changes) => recordAudit(tx, ctx.origin, describeChange(ref, action, changes)),
    });
  };
  const result = await ctx.writes.run(key, () => runTransaction(ctx.db, changeLocked));
  if (hasEvent) ctx.wakeRelay();
  if (isForClients) ctx.usage.add(ref.applicationId, 'events');
  return result;
}
