import { Kysely, PostgresDialect } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import pg from 'pg';
import { BoundedClient } from './database.ts';

/** Migrations by name; names begin with a timestamp, and their order is the order of application. */
export type Migrations = Readonly<Record<string, Migration>>;

/** Longest wait for another process that is migrating the same schema. */
const LOCK_TIMEOUT_MS = 300_000;

/**
 * Brings a schema up to date. Any number of processes may do it at once: an advisory lock, held for the whole run, lets one apply each
 * migration and the others find it applied (promises R10).
 *
 * @returns the names of the migrations that this call applied
 */
export async function migrate(url: string, schema: string, migrations: Migrations): Promise<string[]> {
  const lock = new BoundedClient({ connectionString: url, connectionTimeoutMillis: 10_000, lock_timeout: LOCK_TIMEOUT_MS });
  // A connection lost during a migration frees the lock, and fails what comes next on it.
  lock.on('error', () => undefined);
  await lock.connect();
  try {
    await lock.query('select pg_advisory_lock(hashtext($1))', [`latchkey/migrate/${schema}`]);
    const exists = await lock.query('select 1 from pg_namespace where nspname = $1', [schema]);
    if (exists.rowCount === 0) await lock.query(`create schema ${pg.escapeIdentifier(schema)}`);
    return await applyMigrations(url, schema, migrations);
  } finally {
    await lock.end();
  }
}

async function applyMigrations(url: string, schema: string, migrations: Migrations): Promise<string[]> {
  const pool = new pg.Pool({ connectionString: url, max: 1, Client: BoundedClient, options: `-c search_path=${schema}` });
  pool.on('error', () => undefined);
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
  try {
    const provider = { getMigrations: async () => ({ ...migrations }) };
    const { error, results } = await new Migrator({ db, provider, migrationTableSchema: schema }).migrateToLatest();
    if (error) throw error;
    return (results ?? []).map((result) => result.migrationName);
  } finally {
    await db.destroy();
  }
}
