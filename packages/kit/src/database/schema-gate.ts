import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import type { Logger } from '../logger.ts';
import type { Migrations } from './migrate.ts';
import { isSchemaCurrent } from './schema-check.ts';

/** Keeps back what needs the schema. */
export interface SchemaGate {
  /** Begins something: at once where the schema is up to date, or can't be looked for, and else as soon as it is. Resolves when it has begun, or waits. */
  open(begin: () => void): Promise<void>;
  /** What waits does not begin any more. */
  close(): Promise<void>;
}

/** How often the schema is looked for, in milliseconds. */
const LOOK_INTERVAL_MS = 1_000;

/**
 * A gate for work behind the scenes, which would fail again and again until another process has migrated the schema, as in a first rollout. It says once that
 * it waits.
 *
 * @param pool reaches the schema
 */
export function createSchemaGate(pool: pg.Pool, migrations: Migrations, logger: Logger): SchemaGate {
  const closing = new AbortController();
  let waiting: Promise<void> | undefined;
  /** @param otherwise what to take it for where the database does not answer */
  const isCurrent = (otherwise: boolean) => isSchemaCurrent(pool, migrations).catch(() => otherwise);
  const wait = async (begin: () => void) => {
    while (!(await isCurrent(false))) {
      await delay(LOOK_INTERVAL_MS, undefined, { signal: closing.signal }).catch(() => undefined);
      if (closing.signal.aborted) return;
    }
    if (closing.signal.aborted) return;
    logger.info('the schema is up to date');
    begin();
  };
  return {
    async open(begin) {
      const mayBegin = await isCurrent(true);
      if (closing.signal.aborted) return;
      if (mayBegin) return begin();
      logger.warn('the schema is not up to date: work behind the scenes waits for its migration');
      waiting = wait(begin);
    },
    async close() {
      closing.abort();
      await waiting;
    },
  };
}
