import { USAGE_DAYS_MAX } from '@latchkey/contract/limits';
import { addDailyCounts, type DailyCounts, dayBefore, selectDailyCounts } from '@latchkey/kit/database/daily-counts';
import { deleteExpired } from '@latchkey/kit/database/delete-expired';
import { fromRow } from '@latchkey/kit/rpc/from-row';
import type { Sweep } from '@latchkey/kit/sweeper/sweeper';
import { DailyUsageSchema, type ListDailyUsageRequest, type UsageCounts } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import type { AppsContext } from '../context.ts';
import { errors } from '../proto-errors.ts';

type UsageContext = Pick<AppsContext, 'db' | 'clock'>;

type GivenCounts = Partial<Omit<UsageCounts, '$typeName'>> & { readonly events?: number };

const USAGE: DailyCounts<'events' | 'downloads' | 'uploads' | 'clients_max'> = {
  table: 'daily_usage',
  owner: 'application',
  columns: { events: 'sum', downloads: 'sum', uploads: 'sum', clients_max: 'max' },
};
const COUNTS_MAX = 1_000;

/**
 * Adds counts to the usage of the current day. Ids of no application are ignored.
 *
 * @throws `page_token_invalid` for more than 1,000 counts
 */
export async function recordUsage({ db, clock }: UsageContext, given: readonly GivenCounts[]): Promise<void> {
  if (given.length > COUNTS_MAX) throw errors.page_token_invalid();
  const counts = given.map(({ applicationId: id = '', events = 0, downloads = 0, uploads = 0, clients: clients_max = 0 }) => {
    return { id, events, downloads, uploads, clients_max };
  });
  await addDailyCounts(db, USAGE, clock(), counts);
}

/**
 * The usage of an application, a row for each of the last 1 to 90 days, oldest first.
 *
 * @throws `page_token_invalid`, `application_not_found`
 */
export async function listDailyUsage({ db, clock }: UsageContext, request: ListDailyUsageRequest) {
  const { accountId, applicationId: id, days } = request;
  if (days < 1 || days > USAGE_DAYS_MAX) throw errors.page_token_invalid();
  const rows = await selectDailyCounts(db, USAGE, { accountId, id }, clock(), days);
  if (rows.length === 0) throw errors.application_not_found();
  return { days: rows.map((row) => fromRow(DailyUsageSchema, row)) };
}

/** A sweep that deletes the usage of days that are not shown any more. */
export function createUsageSweep({ db, clock }: UsageContext): Sweep {
  return (signal) => deleteExpired(db, { table: 'daily_usage', since: 'day' }, dayBefore(clock(), USAGE_DAYS_MAX), signal);
}
