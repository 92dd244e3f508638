import pg from 'pg';
import { splitDatabaseUrl } from './database-url.ts';

const TIMEOUTS = { connectionTimeoutMillis: 1_000, query_timeout: 1_000 };

/** Column that is true on a standby, and where writes are off. */
export const IS_READ_ONLY = `pg_is_in_recovery() or current_setting('default_transaction_read_only')::boolean as "isReadOnly"`;

/** The server accepts no writes: a standby, or a primary before a switch. */
export class ReadOnlyServerError extends Error {
  constructor() {
    super('the PostgreSQL server accepts no writes');
  }
}

/** The servers of a database URL, of which one accepts writes, and the clients connected to it. */
export class DatabaseServers {
  readonly urls: readonly string[];
  readonly clients = new Set<{ drop(): void }>();
  #primary: Promise<URL> | undefined;

  constructor(url: string) {
    this.urls = splitDatabaseUrl(url);
  }

  /** The server that accepts writes, remembered until {@link forgetPrimary}. */
  findPrimary(): Promise<URL> {
    this.#primary ??= Promise.any(this.urls.map(checkPrimary));
    return this.#primary;
  }

  forgetPrimary(): void {
    this.#primary = undefined;
  }

  /** Drops all connections to a server that turned read-only; the next ones find the new primary. */
  leavePrimary(): void {
    this.forgetPrimary();
    for (const client of this.clients) client.drop();
  }
}

async function checkPrimary(url: string): Promise<URL> {
  const client = new pg.Client({ connectionString: url, ...TIMEOUTS });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<{ isReadOnly: boolean }>(`select ${IS_READ_ONLY}`);
    if (rows[0]?.isReadOnly !== false) throw new ReadOnlyServerError();
    return new URL(url);
  } finally {
    client.end().catch(() => undefined);
  }
}
