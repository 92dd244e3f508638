import type { ServerResponse } from 'node:http';
import { DEFAULT_LIMITS } from '@latchkey/contract/default-limits';
import { CallQueue } from '@latchkey/kit/concurrency/call-queue';
import { concurrencyReached, type Limit } from '../rate-limit/rate-limits.ts';

/** Concurrent large responses to one account, so that they don't delay other accounts. */
const CONCURRENT: Limit = { name: 'concurrent-lists', max: 4, windowMs: 1_000 };
/**
 * Those of one account that are made, sent or wait: as many as a network may send in a minute by
 * default, as lists that wait hold little. And how long they wait, in milliseconds.
 */
const OF_ACCOUNT_MAX = DEFAULT_LIMITS.RATE_LIMIT_IP_PER_MINUTE;
const WAIT_MS = 5_000;

export const LARGE_RESPONSES_RULE = `${CONCURRENT.max} large lists of an account, of all routes together, run concurrently. Up to ${OF_ACCOUNT_MAX - CONCURRENT.max} more wait for ${WAIT_MS / 1_000} seconds. Others are answered 429.`;

/**
 * Returns a function that waits for the turn of a large response to an account. The turn lasts
 * until the response is sent: what a client does not read is held in memory.
 *
 * @throws `rate_limit_reached`
 */
export function createLargeResponses() {
  // The number of connections bounds those of all accounts.
  const allAccounts = { concurrency: Number.POSITIVE_INFINITY, size: Number.POSITIVE_INFINITY };
  const ofAccount = { concurrencyPerKey: CONCURRENT.max, sizePerKey: OF_ACCOUNT_MAX, waitMs: WAIT_MS };
  const queue = new CallQueue({ ...allAccounts, ...ofAccount }, () => concurrencyReached(CONCURRENT));
  return (accountId: string, res: ServerResponse): Promise<void> => {
    queue.check(accountId);
    return new Promise<void>((begin, reject) => {
      const untilSent = async () => {
        begin();
        if (!res.closed) await new Promise((resolve) => res.once('close', resolve));
      };
      queue.run(accountId, untilSent).catch(reject);
    });
  };
}

export type WaitForLargeResponse = ReturnType<typeof createLargeResponses>;
