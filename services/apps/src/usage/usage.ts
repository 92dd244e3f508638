import { USAGE_DAYS_MAX } from '@latchkey/contract/limits';
import { deleteInBatches, type Sweep } from '@latchkey/kit/sweeper/sweeper';
import { parseId } from '@latchkey/kit/validation/id';
import { type ApplicationRef, parseRef } from '../application/application-ref.ts';
import type { AppsContext } from '../context.ts';
import { errors } from '../errors.ts';
import { addUsage, type DailyUsageRow, deleteUsageBefore, selectDailyUsage, type UsageCounts } from './usage.store.ts';

type UsageContext = Pick<AppsContext, 'db' | 'clock'>;

const DAY_MS = 24 * 3_600_000;
const COUNTS_MAX = 1_000;
const BATCH_MAX = 1_000;

/** The day (UTC) that lies this many days before a time, `YYYY-MM-DD`. */
const dayBefore = (time: Date, days = 0) => new Date(time.getTime() - days * DAY_MS).toISOString().slice(0, 10);

/**
 * Adds counts to the usage of the current day. Ids of no application are ignored.
 *
 * @throws `page_token_invalid` for more than 1,000 counts
 */
export async function recordUsage({ db, clock }: UsageContext, given: ReadonlyArray<Partial<UsageCounts>>): Promise<void> {
  if (given.length > COUNTS_MAX) throw errors.page_token_invalid();
  const counts = given.flatMap(({ applicationId: text = '', events = 0, downloads = 0, uploads = 0, clients = 0 }) => {
    const applicationId = parseId(text);
    return applicationId ? [{ applicationId, events, downloads, uploads, clients }] : [];
  });
  if (counts.length > 0) await addUsage(db, dayBefore(clock()), counts);
}

/**
 * The usage of an application, a row for each of the last days, oldest first.
 *
 * @param days 1 to 90
 * @throws `page_token_invalid`, `application_not_found`
 */
export async function listDailyUsage({ db, clock }: UsageContext, ref: ApplicationRef, days: number): Promise<DailyUsageRow[]> {
  if (days < 1 || days > USAGE_DAYS_MAX) throw errors.page_token_invalid();
  const rows = await selectDailyUsage(db, parseRef(ref), dayBefore(clock()), days);
  if (rows.length === 0) throw errors.application_not_found();
  return rows;
}

/** A sweep that deletes the usage of days that are not shown any more. */
export function createUsageSweep({ db, clock }: UsageContext): Sweep {
  return (signal) =>
    deleteInBatches(BATCH_MAX, signal, (limit) => deleteUsageBefore(db, dayBefore(clock(), USAGE_DAYS_MAX - 1), limit));
}
