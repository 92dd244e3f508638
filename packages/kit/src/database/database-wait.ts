import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../logger.ts';
import { within } from '../within.ts';
import { BoundedClient, isDatabaseUnavailable } from './database.ts';

/** Longest wait for a database, in milliseconds. Who starts processes again that have ended waits longer and longer between two tries. */
const WAIT_MS_MAX = 60_000;

const INTERVAL_MS = 250;
const CONNECT_TIMEOUT_MS = 2_000;
/** A pooler takes connections also while the server behind it is away, and then says nothing. */
const QUERY_TIMEOUT_MS = 2_000;
const END_TIMEOUT_MS = 1_000;

/** What `pg` says of a server that takes a connection and says nothing on it. */
const SILENCE_MESSAGE = 'timeout expired';

/** How a wait ends before its time. */
export interface DatabaseWait {
  readonly logger: Logger;
  /** Ends the wait. */
  readonly signal: AbortSignal;
  /** In milliseconds; a minute unless set. */
  readonly waitMsMax?: number;
}

/**
 * Waits until a database can be asked, so that a service may be started before it. One that does not come is for the first who uses it to find.
 *
 * @throws what `pg` throws where waiting does not help, as for a wrong password
 */
export async function untilDatabaseAnswers(
  url: string,
  { logger, signal, waitMsMax = WAIT_MS_MAX }: DatabaseWait,
): Promise<void> {
  const giveUpAt = performance.now() + waitMsMax;
  for (let tries = 1; !signal.aborted && performance.now() < giveUpAt; tries += 1) {
    try {
      await ask(url);
      return;
    } catch (err) {
      const isAway = isDatabaseUnavailable(err) || (err as Error).message === SILENCE_MESSAGE;
      if (!isAway) throw err;
      if (tries === 1) logger.warn({ err, waitMsMax }, 'waiting for the database');
    }
    await delay(INTERVAL_MS, undefined, { signal }).catch(() => undefined);
  }
}

async function ask(url: string): Promise<void> {
  const timeouts = { connectionTimeoutMillis: CONNECT_TIMEOUT_MS, query_timeout: QUERY_TIMEOUT_MS };
  const client = new BoundedClient({ connectionString: url, ...timeouts });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('select 1');
  } finally {
    await within(END_TIMEOUT_MS, client.end());
  }
}
