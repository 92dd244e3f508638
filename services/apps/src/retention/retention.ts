import type { Sweep } from '@latchkey/kit/sweeper/sweeper';
import type { Db } from '../db/schema.ts';
import { deleteExpiredEvents } from './retention.store.ts';

/** Time and number of events that the log retains; docs/events.md promises it to live clients. */
const RETENTION = {
  /** Age of events for live clients, in hours. */
  eventHours: 24,
  /** Newest events of an application that live clients can read again. */
  eventCount: 1_000,
  /** Age of deletions in days, if longer: services that were away still have to clean up. */
  deletionDays: 30,
};

export const RETENTION_INTERVAL_MS = 5 * 60_000;

const HOUR_MS = 3_600_000;
export const BATCH_MAX = 1_000;
/** Applications of one statement, which takes some 10 ms for them. */
const APPLICATIONS_MAX = 250;
const BEFORE_ALL = '00000000-0000-0000-0000-000000000000';

/** A sweep that deletes the events which are not retained. Any number of processes may run it. */
export function createRetentionSweep(
  db: Db,
  clock: () => Date,
  retention: Partial<typeof RETENTION & { applicationsMax: number }> = {},
): Sweep {
  const { eventHours, eventCount, deletionDays, applicationsMax } = {
    ...RETENTION,
    applicationsMax: APPLICATIONS_MAX,
    ...retention,
  };
  return async (signal) => {
    const hoursAgo = (hours: number) => new Date(clock().getTime() - hours * HOUR_MS);
    const deletionsAfter = hoursAgo(Math.max(eventHours, deletionDays * 24));
    const retained = { eventsAfter: hoursAgo(eventHours), deletionsAfter, count: eventCount };
    let after: string | undefined = BEFORE_ALL;
    while (after !== undefined && !signal.aborted)
      after = await deleteExpiredEvents(db, retained, { after, applicationsMax, eventsMax: BATCH_MAX });
  };
}
