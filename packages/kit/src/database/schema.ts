import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import type { Logger } from '../log/logger.ts';
import { checkDatabase, isMissingTable } from './database.ts';
import type { Migrations } from './migrate.ts';

/**
 * Creates a readiness check: it rejects while the database does not respond, and until the schema
 * has the last of the service's migrations. A newer schema, as during a rollback of a release, is
 * ready.
 */
export function createSchemaCheck(pool: pg.Pool, migrations: Migrations): () => Promise<void> {
  let isCurrent = false;
  return async () => {
    await checkDatabase(pool);
    isCurrent ||= await isSchemaCurrent(pool, migrations);
    if (!isCurrent) throw new Error('the schema is not up to date');
  };
}

async function isSchemaCurrent(pool: pg.Pool, migrations: Migrations): Promise<boolean> {
  const last = Object.keys(migrations).sort().at(-1);
  if (last === undefined) return true;
  try {
    const { rowCount } = await pool.query('select 1 from kysely_migration where name = $1', [last]);
    return rowCount === 1;
  } catch (err) {
    if (isMissingTable(err)) return false;
    throw err;
  }
}

/** Delays background work until the schema is up to date. */
export interface SchemaGate {
  /**
   * Calls `begin` as soon as the schema is up to date; immediately while the database does not
   * respond.
   */
  open(begin: () => void): Promise<void>;
  /** Cancels a waiting `begin`. */
  close(): Promise<void>;
}

const POLL_INTERVAL_MS = 1_000;

/**
 * Creates a gate for background work, which would fail until another process has migrated the
 * schema.
 */
export function createSchemaGate(pool: pg.Pool, migrations: Migrations, logger: Logger): SchemaGate {
  const closing = new AbortController();
  const { signal } = closing;
  let waiting: Promise<void> | undefined;
  const isCurrent = (whenUnknown: boolean) => isSchemaCurrent(pool, migrations).catch(() => whenUnknown);
  const wait = async (begin: () => void) => {
    while (!signal.aborted && !(await isCurrent(false)))
      await delay(POLL_INTERVAL_MS, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    logger.info('the schema is up to date');
    begin();
  };
  return {
    async open(begin) {
      const mayBegin = await isCurrent(true);
      if (signal.aborted) return;
      if (mayBegin) return begin();
      logger.warn('the schema is not up to date: background work waits for its migration');
      waiting = wait(begin);
    },
    async close() {
      closing.abort();
      await waiting;
    },
  };
}
