import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { commonErrors } from '../errors.ts';
import type { Logger } from '../logger.ts';
import { activeTracer } from '../tracing/tracer.ts';
import { watchPool } from './database-metrics.ts';
import { inQuerySpan, tracePool } from './query-span.ts';

/** How to reach one service's schema. */
export interface DatabaseOptions {
  /** `postgres://` URL with the service's role. */
  readonly url: string;
  /** Schema that holds the service's tables. */
  readonly schema: string;
  readonly logger: Logger;
  /** Most connections. 10 unless set. */
  readonly poolMax?: number;
}

/** A pool, and a query builder on it. */
export interface Database<T> {
  readonly db: Kysely<T>;
  readonly pool: pg.Pool;
  close(): Promise<void>;
}

/** Bounds of a wait for a connection and for an answer; together they keep a frozen database's error within 5 s. */
const CONNECT_TIMEOUT_MS = 2_000;
const QUERY_TIMEOUT_MS = 2_500;
/** Less than the bound of the wait, so that a database that works but is slow answers for itself, and keeps the connection. */
const STATEMENT_TIMEOUT_MS = 2_250;

/**
 * A client whose connection dies with a query that was not answered in time. Kysely would give it back to the pool, where the late
 * answer would be taken for the next query's.
 */
export class BoundedClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config);
    // The pool listens to idle clients only; without a listener, a connection lost in between two queries of a transaction would
    // end the process. The next query fails by itself.
    this.on('error', () => undefined);
  }

  // biome-ignore lint/suspicious/noExplicitAny: pg's overloads can't be restated; arguments and result pass through untouched.
  override query(...args: any[]): any {
    // Those with a callback are the pool's own, and have a span there.
    if (activeTracer() && typeof args.at(-1) !== 'function') return inQuerySpan(args[0], async () => this.#query(args));
    return this.#query(args);
  }

  // biome-ignore lint/suspicious/noExplicitAny: as above.
  #query(args: any[]): any {
    // biome-ignore lint/suspicious/noExplicitAny: as above.
    const result = (super.query as any)(...args);
    if (!(result instanceof Promise)) return result;
    return result.catch((err: unknown) => {
      if (isReadTimeout(err)) this.#abandon();
      throw err;
    });
  }

  /** Hangs up, and marks the client as ending: the pool would hand it out again before it noticed that the connection is gone. */
  #abandon(): void {
    this.end().catch(() => undefined);
    (this as unknown as { connection: pg.Connection }).connection.stream.destroy();
  }
}

/** Opens a pool for one schema. Nothing is connected until the first query. */
export function createDatabase<T>(options: DatabaseOptions): Database<T> {
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.poolMax ?? 10,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    idle_in_transaction_session_timeout: 10_000,
    application_name: `latchkey-${options.schema}`,
    options: `-c search_path=${options.schema}`,
    Client: BoundedClient,
  });
  pool.on('error', (err) => options.logger.warn({ err }, 'database connection lost'));
  const db = new Kysely<T>({ dialect: new PostgresDialect({ pool }) });
  tracePool(pool);
  const unwatch = watchPool(pool, options.schema);
  const close = async () => {
    unwatch();
    await db.destroy();
    // Kysely ends a pool only if it has used it.
    if (!pool.ending) await pool.end();
  };
  return { db, pool, close };
}

/** Fails with `dependency_unavailable` unless the database answers a query now. */
export async function checkDatabase(pool: pg.Pool): Promise<void> {
  try {
    await pool.query('select 1');
  } catch {
    throw commonErrors.dependency_unavailable();
  }
}

/** SQLSTATE of a unique violation. */
const UNIQUE_VIOLATION = '23505';

/** Whether a statement failed on the named unique index or constraint. */
export function isUniqueViolation(err: unknown, constraint: string): boolean {
  return err instanceof pg.DatabaseError && err.code === UNIQUE_VIOLATION && err.constraint === constraint;
}

/**
 * Whether a failure means that the database could not answer, rather than that the statement was wrong: lost or refused
 * connections, shutdown (57P0x), too many connections (53xxx), a time-out (57014, 55P03), a deadlock or a serialisation conflict (40xxx).
 */
export function isDatabaseUnavailable(err: unknown): boolean {
  if (err instanceof pg.DatabaseError) return /^(08|40|53|57|55P03|25P03)/.test(err.code ?? '');
  if (!(err instanceof Error)) return false;
  const code = (err as NodeJS.ErrnoException).code ?? '';
  return isReadTimeout(err) || NETWORK_ERRORS.has(code) || CONNECTION_MESSAGES.test(err.message);
}

const NETWORK_ERRORS = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH']);
const CONNECTION_MESSAGES =
  /^(Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Client was closed|Connection ended)/;

function isReadTimeout(err: unknown): boolean {
  return err instanceof Error && err.message === 'Query read timeout';
}
