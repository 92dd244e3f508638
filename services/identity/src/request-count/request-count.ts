import { USAGE_DAYS_MAX } from '@latchkey/contract/limits';
import { deleteInBatches } from '@latchkey/kit/sweeper/sweeper';
import { parseId } from '@latchkey/kit/validation/id';
import type { ApiKeyRef } from '../api-key/api-key.store.ts';
import type { IdentityContext } from '../context.ts';
import { errors } from '../errors.ts';
import {
  addRequests,
  type DailyRequestsRow,
  deleteRequestsBefore,
  type RequestCount,
  selectDailyRequests,
} from './request-count.store.ts';

type CountContext = Pick<IdentityContext, 'db' | 'clock'>;

const DAY_MS = 24 * 3_600_000;
const COUNTS_MAX = 1_000;
const BATCH_MAX = 1_000;

/** The day (UTC) that lies this many days before a time, `YYYY-MM-DD`. */
const dayBefore = (time: Date, days = 0) => new Date(time.getTime() - days * DAY_MS).toISOString().slice(0, 10);

/** Adds requests to those of the current day: the first 1,000 counts. Ids of no key are ignored. */
export async function recordRequests({ db, clock }: CountContext, given: readonly RequestCount[]): Promise<void> {
  const counts = given.slice(0, COUNTS_MAX).flatMap(({ apiKeyId: text, requests }) => {
    const apiKeyId = parseId(text);
    return apiKeyId ? [{ apiKeyId, requests }] : [];
  });
  if (counts.length > 0) await addRequests(db, dayBefore(clock()), counts);
}

/**
 * The requests of a key, a row for each of the last days, oldest first.
 * @param days 1 to 90; others count as the nearest of these
 * @throws `api_key_not_found`
 */
export async function listRequests({ db, clock }: CountContext, ref: ApiKeyRef, days: number): Promise<DailyRequestsRow[]> {
  const accountId = parseId(ref.accountId);
  const apiKeyId = parseId(ref.apiKeyId);
  const count = Math.max(1, Math.min(days, USAGE_DAYS_MAX));
  const rows = accountId && apiKeyId ? await selectDailyRequests(db, { accountId, apiKeyId }, dayBefore(clock()), count) : [];
  if (rows.length === 0) throw errors.api_key_not_found();
  return rows;
}

/** Deletes the requests of days that are not shown any more. */
export const sweepRequests = ({ db, clock }: CountContext, signal: AbortSignal) =>
  deleteInBatches(BATCH_MAX, signal, (limit) => deleteRequestsBefore(db, dayBefore(clock(), USAGE_DAYS_MAX - 1), limit));
