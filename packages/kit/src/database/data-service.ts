import type pg from 'pg';
import type { Logger } from '../log/logger.ts';
import { stopAll } from '../process/lifecycle.ts';
import type { RpcRoute } from '../rpc/route.ts';
import { type Migrations, migrate } from './migrate.ts';
import { createSchemaCheck, createSchemaGate } from './schema.ts';

/** Work beside requests: a sweeper, a queue worker, a relay. */
export interface BackgroundWork {
  start(): void;
  stop(): Promise<void>;
}

/** Parts of a service that has a database schema. */
export interface DataServiceParts {
  readonly databaseUrl: string;
  readonly schema: string;
  readonly pool: pg.Pool;
  readonly migrations: Migrations;
  readonly logger: Logger;
  readonly routes: readonly RpcRoute[];
  /** Starts once the schema is up to date, stops before {@link close}; all parts concurrently. */
  readonly background: readonly BackgroundWork[];
  /** Checks and connections at start, before the background work. */
  prepare?(): Promise<void>;
  /** A readiness check besides that of the schema. */
  checkReady?(): Promise<void>;
  /** Closes what requests and background work use: queues, Redis, the database. */
  close(): Promise<void>;
}

/** A composed service with a database schema. Nothing is connected before its start. */
export interface DataService {
  readonly logger: Logger;
  readonly routes: readonly RpcRoute[];
  /** Brings the schema up to date; returns the names of the applied migrations. */
  migrate(): Promise<string[]>;
  start(): Promise<void>;
  stop(): Promise<void>;
  /**
   * Rejects while the database does not respond, until its schema is up to date, and while
   * `checkReady` of the parts does.
   */
  checkReady(): Promise<void>;
}

/** Composes a service: readiness, migration, and the order of start and stop. */
export function createDataService(parts: DataServiceParts): DataService {
  const { logger, routes, pool, migrations, background } = parts;
  const gate = createSchemaGate(pool, migrations, logger);
  const checkSchema = createSchemaCheck(pool, migrations);
  return {
    logger,
    routes,
    migrate: () => migrate(parts.databaseUrl, parts.schema, migrations),
    async start() {
      await parts.prepare?.();
      await gate.open(() => {
        for (const work of background) work.start();
      });
    },
    stop: () =>
      stopAll(
        () => gate.close(),
        () => Promise.all(background.map((work) => work.stop())),
        () => parts.close(),
      ),
    async checkReady() {
      await checkSchema();
      await parts.checkReady?.();
    },
  };
}
