import pg from 'pg';
import { inQuerySpan } from './query-spans.ts';

/** A read of a few rows by an index. Its name makes each connection plan it once. */
export interface PointRead extends pg.QueryConfig {
  readonly name: string;
  readonly query_timeout?: number;
}

/**
 * With more, fewer statements share a write; with one, a lost connection would stop all reads
 * (ADR 17).
 */
export const LANES = 2;

/**
 * Runs reads over a few connections that send each without waiting for the response to the one
 * before; those of one turn of the event loop share a write. Reads wait for each other in
 * PostgreSQL, so none may lock, sort or scan.
 */
export class PointReads {
  readonly #options: pg.ClientConfig;
  readonly #timeoutMs: number;
  readonly #clients: (pg.Client | undefined)[] = Array(LANES);
  #next = 0;
  #isClosed = false;

  /** @param options of every connection, of which none is opened before the first read */
  constructor(options: pg.ClientConfig & { readonly query_timeout: number }) {
    this.#options = { ...options, pipeline: true };
    this.#timeoutMs = options.query_timeout;
  }

  get connections(): number {
    return this.#clients.filter((client) => client !== undefined).length;
  }

  /**
   * Rejects within the query time-out. A read whose connection is lost, as when another one times
   * out, is sent once more over another connection.
   */
  query<R extends pg.QueryResultRow>(read: PointRead): Promise<pg.QueryResult<R>> {
    return inQuerySpan(read, () => {
      const deadline = performance.now() + this.#timeoutMs;
      return this.#send<R>(read).catch((err: unknown) => {
        const timeLeftMs = Math.floor(deadline - performance.now());
        if (!isConnectionLost(err) || timeLeftMs <= 0 || this.#isClosed) throw err;
        return this.#send<R>({ ...read, query_timeout: timeLeftMs });
      });
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#clients.map((client) => client?.end()));
  }

  #send<R extends pg.QueryResultRow>(read: PointRead): Promise<pg.QueryResult<R>> {
    this.#next = (this.#next + 1) % LANES;
    const current = this.#clients[this.#next];
    // One that a time-out has destroyed ends a moment later.
    const client = current && !streamOf(current).destroyed ? current : this.#connect(this.#next);
    const stream = streamOf(client);
    if (stream.writableCorked === 0) {
      stream.cork();
      setImmediate(() => stream.uncork());
    }
    return client.query<R>(read);
  }

  /** Reads wait in the client until it is connected. */
  #connect(lane: number): pg.Client {
    const client = new pg.Client(this.#options);
    const drop = () => {
      if (this.#clients[lane] === client) this.#clients[lane] = undefined;
    };
    client.on('error', drop);
    client.on('end', drop);
    client.connect().catch(drop);
    this.#clients[lane] = client;
    return client;
  }
}

const streamOf = (client: pg.Client) => (client as unknown as { connection: pg.Connection }).connection.stream;

/** Not for an error that PostgreSQL sent, and not for a read that timed out. */
function isConnectionLost(err: unknown): boolean {
  return !(err instanceof pg.DatabaseError) && (err as Error).message !== 'Query read timeout';
}
