import { parseId } from '@latchkey/kit/id';
import type { Transaction } from 'kysely';
import type { AppsContext } from '../context.ts';
import type { AppsDatabase } from '../db/schema.ts';
import { errors } from '../errors.ts';
import { insertEvent } from '../event/event.store.ts';
import { type EventBody, type EventSubject, toEventRow } from '../event/event.ts';
import { type ApplicationRow, lockApplication } from './application.store.ts';

/** Names an application of an account, as a caller sent it. */
export interface ApplicationRef {
  readonly accountId: string;
  readonly applicationId: string;
}

/** The ids of a reference in canonical form. Throws `application_not_found` for text that names nothing. */
export function parseRef(ref: ApplicationRef): ApplicationRef {
  const accountId = parseId(ref.accountId);
  const applicationId = parseId(ref.applicationId);
  if (!accountId || !applicationId) throw errors.application_not_found();
  return { accountId, applicationId };
}

/** Names an application by its row. */
export function toRef(row: ApplicationRow): ApplicationRef {
  return { accountId: row.account_id, applicationId: row.id };
}

/** Writes an event of the application to the log, as of the given time. A change that moves the `sequence` stores the new one itself. */
export type LogEvent = (event: EventBody, now: Date) => Promise<void>;

/**
 * Runs a change of one application in a transaction that holds the application's row, so that changes of one application follow one another
 * and none is lost. What the change logs is delivered once it is committed. Throws `application_not_found` for one that is not the account's.
 */
export async function changeApplication<T>(
  ctx: AppsContext,
  ref: ApplicationRef,
  change: (tx: Transaction<AppsDatabase>, row: ApplicationRow, log: LogEvent) => Promise<T>,
): Promise<T> {
  const { accountId, applicationId } = parseRef(ref);
  let hasLogged = false;
  const result = await ctx.db.transaction().execute(async (tx) => {
    const row = await lockApplication(tx, accountId, applicationId);
    if (!row) throw errors.application_not_found();
    return change(tx, row, async (event, now) => {
      await insertEvent(tx, toEventRow(toSubject(row), event, now));
      hasLogged = true;
    });
  });
  if (hasLogged) ctx.wakeRelay();
  return result;
}

/** The row as the event log names it. */
function toSubject(row: ApplicationRow): EventSubject {
  return { id: row.id, accountId: row.account_id, lastSequence: Number(row.last_sequence) };
}
