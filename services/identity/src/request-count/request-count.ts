import { USAGE_DAYS_MAX } from '@latchkey/contract/limits';
import { addDailyCounts, type DailyCounts, selectDailyCounts } from '@latchkey/kit/database/daily-counts';
import type { ApiKeyRequestCount } from '@latchkey/proto/latchkey/identity/v1/api_key_pb';
import type { ApiKeyRef } from '../api-key/api-key.store.ts';
import type { IdentityContext } from '../context.ts';
import { errors } from '../proto-errors.ts';

type CountContext = Pick<IdentityContext, 'db' | 'clock'>;

const REQUESTS: DailyCounts<'requests'> = {
  table: 'daily_requests',
  owner: 'api_key',
  columns: { requests: 'sum' },
};
const COUNTS_MAX = 1_000;

/** Adds requests to those of the current day: the first 1,000 counts. Ids of no key are ignored. */
export async function recordRequests({ db, clock }: CountContext, given: readonly ApiKeyRequestCount[]): Promise<void> {
  const counts = given.slice(0, COUNTS_MAX).map(({ apiKeyId: id, requests }) => ({ id, requests }));
  await addDailyCounts(db, REQUESTS, clock(), counts);
}

/**
 * The requests of a key, a row for each of the last days, oldest first.
 * @param days 1 to 90; others count as the nearest of these
 * @throws `api_key_not_found`
 */
export async function listRequests({ db, clock }: CountContext, { accountId, apiKeyId: id }: ApiKeyRef, days: number) {
  const count = Math.max(1, Math.min(days, USAGE_DAYS_MAX));
  const rows = await selectDailyCounts(db, REQUESTS, { accountId, id }, clock(), count);
  if (rows.length === 0) throw errors.api_key_not_found();
  return rows;
}
