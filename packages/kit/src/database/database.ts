import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { commonErrors } from '../errors/errors.ts';
import type { Logger } from '../log/logger.ts';
import { DEADLINES_MS } from '../rpc/deadlines.ts';
import { Gauge } from '../telemetry/metrics.ts';
import { activeTracer, inSpan } from '../telemetry/tracing.ts';
import { isTlsFailure } from '../tls/tls-failure.ts';
import { DatabaseServers, IS_READ_ONLY, ReadOnlyServerError } from './database-servers.ts';

export interface Database<T> {
  readonly db: Kysely<T>;
  readonly pool: pg.Pool;
  close(): Promise<void>;
}

export interface BoundedClientConfig extends pg.ClientConfig {
  readonly connectionString: string;
  /** Shared by the clients of a pool. */
  readonly servers?: DatabaseServers;
  /** Settings of the session, such as `search_path`: poolers reject them as start-up parameters. */
  readonly session?: Readonly<Record<string, string | number>>;
}

/**
 * Connects to the server that accepts writes. Drops all connections to one that turned read-only,
 * and its own when a query times out: Kysely would return it to the pool.
 */
export class BoundedClient extends pg.Client {
  readonly #servers: DatabaseServers;
  readonly #openSession: string;

  constructor({
    connectionString,
    servers = new DatabaseServers(connectionString),
    session = {},
    ...config
  }: BoundedClientConfig) {
    super({ ...config, connectionString: servers.urls[0] });
    this.#servers = servers;
    const settings = Object.entries(session).map(([name, value]) => `set_config('${name}', '${value}', false)`);
    this.#openSession = `select ${[...settings, IS_READ_ONLY].join(', ')}`;
    // Without a listener, a connection lost within a transaction would end the process.
    this.on('error', () => undefined);
    this.once('end', () => servers.clients.delete(this));
    this.connection.on('errorMessage', ({ code }: pg.DatabaseError) => {
      // The statement gets its error first.
      if (code === READ_ONLY) setImmediate(() => servers.leavePrimary());
    });
  }

  // biome-ignore lint/suspicious/noExplicitAny: pg's overloads can't be restated.
  override connect(callback?: any): any {
    const connected = this.#connect();
    return callback ? void connected.then(() => callback(), callback) : connected;
  }

  async #connect(): Promise<this> {
    const servers = this.#servers;
    try {
      if (servers.urls.length > 1) {
        const { hostname, port } = await servers.findPrimary();
        Object.assign(this, { host: hostname.replace(/[[\]]/g, ''), port: Number(port || 5432) });
      }
      await super.connect();
      const { rows } = await super.query<{ isReadOnly: boolean }>(this.#openSession);
      if (rows[0]?.isReadOnly !== false) throw new ReadOnlyServerError();
    } catch (err) {
      // Others stay: a server may refuse one connection for its number.
      if (err instanceof ReadOnlyServerError) servers.leavePrimary();
      else servers.forgetPrimary();
      this.drop();
      throw err;
    }
    servers.clients.add(this);
    return this;
  }

  // biome-ignore lint/suspicious/noExplicitAny: as above.
  override query(...args: any[]): any {
    // Queries with a callback come from the pool, which has a span for them.
    if (activeTracer() && typeof args.at(-1) !== 'function') return inQuerySpan(args[0], async () => this.#query(args));
    return this.#query(args);
  }

  // biome-ignore lint/suspicious/noExplicitAny: as above.
  #query(args: any[]): any {
    // biome-ignore lint/suspicious/noExplicitAny: as above.
    const result = (super.query as any)(...args);
    if (!(result instanceof Promise)) return result;
    return result.catch((err: unknown) => {
      if (isReadTimeout(err)) this.drop();
      throw err;
    });
  }

  /** `end()` marks the client as ending, so that the pool does not hand it out. */
  drop(): void {
    this.end().catch(() => undefined);
    this.connection.stream.destroy();
  }
}

const connections = new Gauge({
  name: 'latchkey_database_connections',
  help: "Connections of a service's pool to PostgreSQL, by state: busy or idle.",
  labels: ['schema', 'state'],
});
const connectionsMax = new Gauge({
  name: 'latchkey_database_connections_max',
  help: 'Most connections that the pool may have (DATABASE_POOL_MAX).',
  labels: ['schema'],
});
const waiting = new Gauge({
  name: 'latchkey_database_waiting',
  help: 'Queries that wait for a connection of the pool.',
  labels: ['schema'],
});

/** A pool whose clients are {@link BoundedClient}s of the same server. */
export function createPool(config: BoundedClientConfig & pg.PoolConfig): pg.Pool {
  const clientConfig = { ...config, servers: new DatabaseServers(config.connectionString) };
  return new pg.Pool({ ...clientConfig, Client: BoundedClient as unknown as typeof pg.Client });
}

const UUID_ARRAY_OID = 2951;
const parseUuids = (text: string) => (text === '{}' ? [] : text.slice(1, -1).split(','));

/** Arrays of UUIDs have no quotes: pg's own parser takes 1 ms for a key with 1,000 applications. */
const types = {
  getTypeParser: ((oid: number, format: 'text') =>
    oid === UUID_ARRAY_OID ? parseUuids : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
};

/** Creates a pool for one schema. Nothing is connected until the first query. */
export function createDatabase<T>(options: {
  readonly url: string;
  readonly schema: string;
  readonly logger: Logger;
  readonly poolMax?: number;
}): Database<T> {
  const { url, schema, logger, poolMax = 10 } = options;
  const pool = createPool({
    connectionString: url,
    max: poolMax,
    types,
    connectionTimeoutMillis: DEADLINES_MS.databaseConnect,
    query_timeout: DEADLINES_MS.databaseQuery,
    application_name: `latchkey-${schema}`,
    session: {
      search_path: schema,
      statement_timeout: DEADLINES_MS.databaseStatement,
      idle_in_transaction_session_timeout: 10_000,
    },
  });
  pool.on('error', (err) => logger.warn({ err }, 'database connection lost'));
  const db = new Kysely<T>({ dialect: new PostgresDialect({ pool }) });
  tracePool(pool);
  const unwatch = [
    connections.watch(() => [
      [pool.totalCount - pool.idleCount, schema, 'busy'],
      [pool.idleCount, schema, 'idle'],
    ]),
    connectionsMax.watch(() => [[poolMax, schema]]),
    waiting.watch(() => [[pool.waitingCount, schema]]),
  ];
  const close = async () => {
    for (const end of unwatch) end();
    await db.destroy();
    // Kysely ends a pool only if it has used it.
    if (!pool.ending) await pool.end();
  };
  return { db, pool, close };
}

/** Fails with `dependency_unavailable` unless the database answers a query now. */
export async function checkDatabase(pool: pg.Pool): Promise<void> {
  await pool.query('select 1').catch(() => {
    throw commonErrors.dependency_unavailable();
  });
}

const isDatabaseError = (err: unknown, code: string): err is pg.DatabaseError =>
  err instanceof pg.DatabaseError && err.code === code;

/** True if a statement failed on the named unique index or constraint. */
export function isUniqueViolation(err: unknown, constraint: string): boolean {
  return isDatabaseError(err, '23505') && err.constraint === constraint;
}

/** True if a statement failed because its table does not exist, as before the first migration. */
export function isMissingTable(err: unknown): err is pg.DatabaseError {
  return isDatabaseError(err, '42P01');
}

/**
 * True if the database could not respond, rather than rejected a wrong statement: lost or refused
 * connections, shutdown (57P0x), too many connections (53xxx), a time-out (57014, 55P03), a
 * deadlock or a serialisation conflict (40xxx), a server that accepts no writes (25006), or one
 * whose certificate is wrong.
 */
export function isDatabaseUnavailable(err: unknown): boolean {
  if (err instanceof pg.DatabaseError) return /^(08|40|53|57|55P03|25P03|25006)/.test(err.code ?? '');
  if (err instanceof AggregateError) return err.errors.every(isDatabaseUnavailable);
  if (err instanceof ReadOnlyServerError) return true;
  if (!(err instanceof Error)) return false;
  const code = (err as NodeJS.ErrnoException).code ?? '';
  return isReadTimeout(err) || isTlsFailure(err) || NETWORK_ERRORS.has(code) || CONNECTION_MESSAGES.test(err.message);
}

/** `read_only_sql_transaction` */
const READ_ONLY = '25006';

const NETWORK_ERRORS = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH']);
const CONNECTION_MESSAGES =
  /^(Connection terminated|timeout exceeded when trying to connect|timeout expired|Client has encountered a connection error|Client was closed|Connection ended)/;

function isReadTimeout(err: unknown): boolean {
  return err instanceof Error && err.message === 'Query read timeout';
}

const VERB = /^\s*(?:with\b[\s\S]*?\)\s*)?(select|insert|update|delete|begin|commit|rollback|set|alter|create)\b/i;
const TABLE = /\b(?:from|into|update)\s+(?:only\s+)?"?([a-z_][a-z0-9_.]*)"?/i;

/** Runs a query inside a span without text and parameters, if a trace is under way. */
function inQuerySpan<T>(query: unknown, run: () => Promise<T>): Promise<T> {
  if (activeTracer()?.traceparent() === undefined) return run();
  const name = summarize(query as string | pg.QueryConfig);
  return inSpan({ name, kind: 'client', attributes: { 'db.system.name': 'postgresql', 'db.query.summary': name } }, run);
}

/** Puts the pool's own queries into spans; the queries of its clients have their own. */
function tracePool(pool: pg.Pool): void {
  if (!activeTracer()) return;
  const query = pool.query.bind(pool) as (...args: unknown[]) => Promise<unknown>;
  const traced = (...args: unknown[]) =>
    typeof args.at(-1) === 'function' ? query(...args) : inQuerySpan(args[0], () => query(...args));
  pool.query = traced as typeof pool.query;
}

function summarize(query: string | pg.QueryConfig): string {
  const { name, text } = typeof query === 'string' ? { text: query } : query;
  if (name !== undefined) return name;
  const verb = VERB.exec(text)?.[1]?.toUpperCase() ?? 'QUERY';
  const table = TABLE.exec(text)?.[1];
  return table === undefined ? verb : `${verb} ${table}`;
}
