import type { Acting } from '@latchkey/audit/actor';
import { type Changes, recordAudit } from '@latchkey/audit/record';
import { runTransaction } from '@latchkey/audit/transaction';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import type { Updateable } from 'kysely';
import type { AppsContext } from '../context.ts';
import type { ApplicationTable, Db } from '../db/schema.ts';
import { type EventBody, logEvents, nextSequence } from '../event/event-log.ts';
import { errors } from '../proto-errors.ts';
import { type ApplicationRow, lockApplication, updateApplication } from './application.store.ts';
import { type ApplicationRef, parseRef } from './application-ref.ts';

/**
 * Concurrent writes wait only for those of their account or application. No limit on the total
 * here: the gateway's rate limit bounds it.
 */
export const WRITES = {
  concurrency: Number.POSITIVE_INFINITY,
  concurrencyPerKey: 1,
  size: Number.POSITIVE_INFINITY,
  sizePerKey: 200,
  waitMs: DEADLINES_MS.queue,
};

/** Changes of applications, by their names in the audit log. */
export type ApplicationAction =
  | 'application.created'
  | 'application.paused'
  | 'application.resumed'
  | 'application.setting_updated'
  | 'application.license_levels_replaced'
  | 'application.runtime_key_rotated'
  | 'application.key_overlap_ended'
  | 'application.deleted'
  | 'application.release_settings_updated'
  | `release.${'created' | 'updated' | 'deleted' | 'published' | 'yanked' | 'rollout_changed'}`;

export async function recordChange(
  { origin }: Acting<AppsContext>,
  tx: Db,
  ref: ApplicationRef,
  action: ApplicationAction,
  changes: Changes,
): Promise<void> {
  await recordAudit(tx, origin, describeChange(ref, action, changes));
}

/** The entry in the audit log of a change. */
export function describeChange({ accountId, applicationId: id }: ApplicationRef, action: ApplicationAction, changes: Changes) {
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
  update(values: Omit<Updateable<ApplicationTable>, 'last_sequence'>, event: EventBody | undefined, now: Date): Promise<void>;
  /** Adds the event of a change that deletes the row. */
  addEvent(event: EventBody, now: Date): Promise<void>;
  record(action: ApplicationAction, changes: Changes): Promise<void>;
}

/**
 * Changes one application in a transaction that locks its row, so that concurrent changes follow
 * one another. Events are delivered after the commit.
 *
 * @throws `application_not_found`, and `queue_full` if too many changes wait
 */
export async function changeApplication<T>(
  ctx: Acting<AppsContext>,
  ref: ApplicationRef,
  apply: (change: ApplicationChange) => Promise<T>,
): Promise<T> {
  const { accountId, applicationId } = parseRef(ref);
  const key = `${accountId}/${applicationId}`;
  ctx.writes.check(key);
  return ctx.writes.run(key, () => applyLocked(ctx, { accountId, applicationId }, apply));
}

async function applyLocked<T>(
  ctx: Acting<AppsContext>,
  { accountId, applicationId }: ApplicationRef,
  apply: (change: ApplicationChange) => Promise<T>,
): Promise<T> {
  let [hasEvent, isForClients] = [false, false];
  const result = await runTransaction(ctx.db, async (tx) => {
    const row = await lockApplication(tx, accountId, applicationId);
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
      record: (action, changes) => recordChange(ctx, tx, { accountId, applicationId }, action, changes),
    });
  });
  if (hasEvent) ctx.wakeRelay();
  if (isForClients) ctx.usage.add(applicationId, 'events');
  return result;
}
