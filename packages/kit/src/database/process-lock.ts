import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { type RawBuilder, sql } from 'kysely';
import type { Logger } from '../log/logger.ts';
import { DEADLINES_MS } from '../rpc/deadlines.ts';
import { BoundedClient } from './database.ts';

const RETRY_MS = 250;

/** PostgreSQL notices within 11 s that the machine of a process is lost. */
const SESSION = { tcp_keepalives_idle: 5, tcp_keepalives_interval: 2, tcp_keepalives_count: 3, idle_session_timeout: 0 };

/**
 * An advisory lock that this process holds on a separate connection. PostgreSQL frees it with the
 * connection, so a row that names the lock shows whether its process has ended. A lost connection
 * is opened again; until then the process counts as ended.
 */
export function createProcessLock(url: string, logger: Logger) {
  const key = randomBytes(8).readBigInt64BE().toString();
  const stopping = new AbortController();
  const { signal } = stopping;
  let isHeld = false;
  let running: Promise<void> | undefined;
  const hold = async () => {
    const client = new BoundedClient({
      connectionString: url,
      connectionTimeoutMillis: DEADLINES_MS.databaseConnect,
      query_timeout: DEADLINES_MS.databaseQuery,
      application_name: 'latchkey-process-lock',
      keepAlive: true,
      session: SESSION,
    });
    const lostOrStopped = once(client, 'end', { signal }).catch(() => undefined);
    try {
      await client.connect();
      await client.query('select pg_advisory_lock($1)', [key]);
      isHeld = true;
      await lostOrStopped;
    } finally {
      isHeld = false;
      client.drop();
    }
  };
  const run = async () => {
    while (!signal.aborted) {
      await hold().catch((err: unknown) => logger.debug({ err }, 'process lock not held'));
      await delay(RETRY_MS, undefined, { signal }).catch(() => undefined);
    }
  };
  return {
    /** Key of the lock, a bigint in decimal; null while this process does not hold it. */
    get id(): string | null {
      return isHeld ? key : null;
    },
    start(): void {
      running = run();
    },
    async stop(): Promise<void> {
      stopping.abort();
      await running;
    },
  };
}

/**
 * True if the process that held the lock has ended; false for null. Takes the lock in shared mode
 * until the transaction ends, so that concurrent checks do not hide it from each other.
 */
export const hasEnded = (lock: RawBuilder<unknown>) => sql<boolean>`coalesce(pg_try_advisory_xact_lock_shared(${lock}), false)`;
