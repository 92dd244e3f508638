import { setTimeout as delay } from 'node:timers/promises';
import { within } from '../concurrency/within.ts';
import type { Logger } from '../log/logger.ts';
import { explainTlsFailure } from '../tls/tls-failure.ts';
import { BoundedClient, isDatabaseUnavailable } from './database.ts';

/** Longest wait for a database; after it, the first query reports the failure. */
const WAIT_MS_MAX = 60_000;
const INTERVAL_MS = 250;
/** Also of the query: a pooler accepts connections while the server behind it is down. */
const ATTEMPT_MS_MAX = 2_000;
const END_TIMEOUT_MS = 1_000;
const TRUST = 'add sslrootcert=<its PEM file> to DATABASE_URL, or set NODE_EXTRA_CA_CERTS to that file';
const NO_TLS = 'the server has no TLS: turn it on there (ssl = on), or remove sslmode from DATABASE_URL';
const TRANSACTION_MODE =
  'DATABASE_URL leads to a pooler that changes the server session between transactions: use its session mode (pool_mode=session)';

/**
 * Waits until a database responds, for a minute unless set. Throws where waiting does not help, as
 * for a wrong password.
 */
export async function waitForDatabase(
  url: string,
  options: { readonly logger: Logger; readonly signal?: AbortSignal; readonly waitMsMax?: number },
): Promise<void> {
  const { logger, signal = new AbortController().signal, waitMsMax = WAIT_MS_MAX } = options;
  const giveUpAt = performance.now() + waitMsMax;
  for (let attempt = 1; !signal.aborted && performance.now() < giveUpAt; attempt += 1) {
    const err = await checkDatabaseUrl(url).catch((failure: unknown) => failure);
    if (err === undefined) return;
    if (!isDatabaseUnavailable(err)) throw err;
    if (attempt === 1) logger.warn({ err, waitMsMax }, 'waiting for the database');
    await delay(INTERVAL_MS, undefined, { signal }).catch(() => undefined);
  }
}

/**
 * Fails unless the database responds, and gives each of two connections a server session: settings
 * and named statements need one.
 */
export async function checkDatabaseUrl(url: string, timeoutMs = ATTEMPT_MS_MAX): Promise<void> {
  const open = () => new BoundedClient({ connectionString: url, connectionTimeoutMillis: timeoutMs, query_timeout: timeoutMs });
  const [first, second] = [open(), open()] as const;
  const pidOf = async (client: BoundedClient) => (await client.query('select pg_backend_pid() as pid')).rows[0].pid as number;
  try {
    await first.connect();
    const pid = await pidOf(first);
    await second.connect();
    // A transaction occupies a session in every mode of a pooler.
    await second.query('begin');
    if ((await pidOf(second)) === pid || (await pidOf(first)) !== pid) throw new Error(TRANSACTION_MODE);
  } catch (err) {
    const fault = (err instanceof AggregateError ? err.errors : [err]).map(explainFailure).find(Boolean);
    throw fault === undefined ? err : new Error(fault, { cause: err });
  } finally {
    await within(END_TIMEOUT_MS, Promise.all([first.end(), second.end()]));
  }
}

function explainFailure(err: Error): string | undefined {
  // pg has no code for it.
  return /does not support SSL/.test(err.message) ? NO_TLS : explainTlsFailure(err, 'DATABASE_URL', TRUST);
}
