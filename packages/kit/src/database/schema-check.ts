import pg from 'pg';
import { checkDatabase } from './database.ts';
import type { Migrations } from './migrate.ts';

/** SQLSTATE of a table that does not exist. */
const UNDEFINED_TABLE = '42P01';

/**
 * A readiness check for a service with a schema: it rejects while the database does not answer, and until the schema has had the last of the service's
 * migrations, which another process may be applying. Once it has had it, it is not looked for again. A schema that is ahead, as while a release is
 * rolled back, is ready.
 *
 * @param pool reaches the schema
 */
export function createSchemaCheck(pool: pg.Pool, migrations: Migrations): () => Promise<void> {
  let isCurrent = false;
  return async () => {
    await checkDatabase(pool);
    if (isCurrent) return;
    isCurrent = await isSchemaCurrent(pool, migrations);
    if (!isCurrent) throw new Error('the schema is not up to date');
  };
}

/** Whether a statement failed because there is no such table, as before the first migration. */
export function isMissingTable(err: unknown): err is pg.DatabaseError {
  return err instanceof pg.DatabaseError && err.code === UNDEFINED_TABLE;
}

/** Whether the schema has had the last of the service's migrations. */
export async function isSchemaCurrent(pool: pg.Pool, migrations: Migrations): Promise<boolean> {
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
