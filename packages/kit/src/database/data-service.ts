import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import type { Logger } from '../log/logger.ts';
import { stopAll } from '../process/lifecycle.ts';
import type { RpcRoute } from '../rpc/route.ts';
import { checkDatabase } from './database.ts';
import { appliedMigrations, type Migrations, migrate } from './migrate.ts';

export interface DataServiceParts {
  readonly databaseUrl: string;
  readonly schema: string;
  readonly pool: pg.Pool;
  readonly migrations: Migrations;
  readonly logger: Logger;
  readonly routes: readonly RpcRoute[];
  /** Starts once the schema is up to date, stops before {@link close}; all parts concurrently. */
  readonly background: ReadonlyArray<{ start(): void; stop(): Promise<void> }>;
  prepare?(): Promise<void>;
  checkReady?(): Promise<void>;
  /** Closes what requests and background work use: queues, Redis, the database. */
  close(): Promise<void>;
}

const POLL_INTERVAL_MS = 1_000;

/** Composes a service with a database schema. Nothing is connected before its start. */
export function createDataService(parts: DataServiceParts) {
  const { logger, routes, pool, migrations, background } = parts;
  const stopping = new AbortController();
  const { signal } = stopping;
  let isCurrent = false;
  let waiting: Promise<void> | undefined;
  const checkSchema = async () => {
    isCurrent ||= await isSchemaCurrent(pool, migrations);
    return isCurrent;
  };
  const startBackground = () => {
    for (const work of background) work.start();
  };
  const startOnceMigrated = async () => {
    while (!signal.aborted && !(await checkSchema().catch(() => false)))
      await delay(POLL_INTERVAL_MS, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    logger.info('the schema is up to date');
    startBackground();
  };
  return {
    logger,
    routes,
    /** Brings the schema up to date; returns the names of the applied migrations. */
    migrate: () => migrate(parts.databaseUrl, parts.schema, migrations),
    async start(): Promise<void> {
      await parts.prepare?.();
      // While the database does not respond, background work starts and retries by itself.
      const mayStart = await checkSchema().catch(() => true);
      if (signal.aborted) return;
      if (mayStart) return startBackground();
      logger.warn('the schema is not up to date: background work waits for its migration');
      waiting = startOnceMigrated();
    },
    async stop(): Promise<void> {
      stopping.abort();
      await waiting;
      await stopAll(
        () => Promise.all(background.map((work) => work.stop())),
        () => parts.close(),
      );
    },
    /** Rejects while the database does not respond, the schema is old, or a part is not ready. */
    async checkReady(): Promise<void> {
      await checkDatabase(pool);
      if (!(await checkSchema())) throw new Error('the schema is not up to date');
      await parts.checkReady?.();
    },
  };
}

/** True if the schema has the last migration. A newer one, as in a rollback, has it too. */
async function isSchemaCurrent(pool: pg.Pool, migrations: Migrations): Promise<boolean> {
  const last = Object.keys(migrations).sort().at(-1);
  return last === undefined || (await appliedMigrations(pool)).has(last);
}
