import type { Acting } from '@latchkey/audit/actor';
import type { Changes } from '@latchkey/audit/record';
import { recordAudit } from '@latchkey/audit/record';
import { parseId } from '@latchkey/kit/validation/id';
import type { Kysely } from 'kysely';
import type { AppsContext } from '../context.ts';
import type { AppsDatabase } from '../db/schema.ts';
import { errors } from '../errors.ts';
import { insertEvent } from '../event/event.store.ts';
import { type EventBody, toEventRow } from '../event/event.ts';
import { type ApplicationRow, lockApplication } from './application.store.ts';

/** Names an application of an account, as a caller sent it. */
export interface ApplicationRef {
  readonly accountId: string;
  readonly applicationId: string;
}

/** Changes of applications, by their names in the audit log. */
export type ApplicationAction =
  | 'application.created'
  | 'application.paused'
  | 'application.resumed'
  | 'application.setting_updated'
  | 'application.license_levels_replaced'
  | 'application.runtime_key_rotated'
  | 'application.deleted';

/** The ids of a reference in canonical form. Throws `application_not_found` for other text. */
export function parseRef(ref: ApplicationRef): ApplicationRef {
  const accountId = parseId(ref.accountId);
  const applicationId = parseId(ref.applicationId);
  if (!accountId || !applicationId) throw errors.application_not_found();
  return { accountId, applicationId };
}

/** A change of an application under way, in its transaction. */
export interface ApplicationChange {
  readonly tx: Kysely<AppsDatabase>;
  /** The application before the change, whose row is locked. */
  readonly row: ApplicationRow;
  /** Adds an event to the log. The change stores a new `last_sequence` itself. */
  addEvent(event: EventBody, now: Date): Promise<void>;
  /** Adds an entry to the audit log. */
  record(action: ApplicationAction, changes: Changes): Promise<void>;
}

/**
 * Changes one application in a transaction that locks its row, so that concurrent changes follow one another. Events are delivered after
 * the commit.
 *
 * @throws `application_not_found`
 */
export async function changeApplication<T>(
  ctx: Acting<AppsContext>,
  ref: ApplicationRef,
  change: (under: ApplicationChange) => Promise<T>,
): Promise<T> {
  const { accountId, applicationId } = parseRef(ref);
  let hasEvent = false;
  const result = await ctx.db.transaction().execute(async (tx) => {
    const row = await lockApplication(tx, accountId, applicationId);
    if (!row) throw errors.application_not_found();
    return change({
      tx,
      row,
      addEvent: async (event, now) => {
        await insertEvent(tx, toEventRow(row, event, now));
        hasEvent = true;
      },
      record: (action, changes) => recordApplication(ctx, tx, { accountId, applicationId }, action, changes),
    });
  });
  if (hasEvent) ctx.wakeRelay();
  return result;
}

/** Adds a change of an application to the audit log, in its transaction. */
export async function recordApplication(
  { origin }: Pick<Acting<AppsContext>, 'origin'>,
  tx: Kysely<AppsDatabase>,
  { accountId, applicationId }: ApplicationRef,
  action: ApplicationAction,
  changes: Changes,
): Promise<void> {
  await recordAudit(tx, origin, { accountId, action, subject: { kind: 'application', id: applicationId }, changes });
}
