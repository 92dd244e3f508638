import { EVENTS_RETAINED } from '@latchkey/contract/limits';
import { DELETIONS_RETAINED_MS } from '@latchkey/deletions/retention';
import type { Sweep } from '@latchkey/kit/sweeper/sweeper';
import type { Db } from '../db/schema.ts';
import { deleteExpiredEvents } from './retention.store.ts';

/** Age to which events are retained; docs/events.md promises it to live clients. */
const EVENTS_MS = EVENTS_RETAINED.hours * 3_600_000;
export const RETENTION_INTERVAL_MS = 5 * 60_000;

export const BATCH_MAX = 1_000;
/** Applications of one statement, which takes some 10 ms for them. */
const APPLICATIONS_MAX = 250;
const BEFORE_ALL = '00000000-0000-0000-0000-000000000000';

/** A sweep that deletes the events which are not retained. Any number of processes may run it. */
export function createRetentionSweep(
  db: Db,
  clock: () => Date,
  { eventCount = EVENTS_RETAINED.count, applicationsMax = APPLICATIONS_MAX } = {},
): Sweep {
  return async (signal) => {
    const before = (ageMs: number) => new Date(clock().getTime() - ageMs);
    const retained = { eventsAfter: before(EVENTS_MS), deletionsAfter: before(DELETIONS_RETAINED_MS), count: eventCount };
    let after: string | undefined = BEFORE_ALL;
    while (after !== undefined && !signal.aborted)
      after = await deleteExpiredEvents(db, retained, { after, applicationsMax, eventsMax: BATCH_MAX });
  };
}
