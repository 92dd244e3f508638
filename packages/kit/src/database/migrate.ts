import * as fs from 'node:fs/promises';
import * as path from 'node:path';
import { Kysely, PostgresDialect } from 'kysely';
import { FileMigrationProvider, type Migration, Migrator } from 'kysely/migration';
import pg from 'pg';
import { BoundedClient, createPool, isMissingTable } from './database.ts';

/** Migrations by name; names begin with a timestamp and are applied in order. */
export type Migrations = Readonly<Record<string, Migration>>;

const LOCK_TIMEOUT_MS = 300_000;

/**
 * Brings a schema up to date, and returns the names of the applied migrations. Any number of
 * processes may do so concurrently: an advisory lock makes sure that each is applied once. The
 * schema of a newer release is left as it is, because this release works on it after a rollback.
 * Applied migrations that are no longer a file are forgotten: older ones took over their changes.
 */
export async function migrate(url: string, schema: string, migrations: Migrations): Promise<string[]> {
  // A connection lost during a migration frees the lock, and fails the next statement.
  const session = { lock_timeout: LOCK_TIMEOUT_MS };
  const lock = new BoundedClient({ connectionString: url, connectionTimeoutMillis: 10_000, session });
  await lock.connect();
  const pool = createPool({ connectionString: url, max: 1, session: { search_path: schema } });
  pool.on('error', () => undefined);
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
  try {
    await lock.query('select pg_advisory_lock(hashtext($1))', [`latchkey/migrate/${schema}`]);
    const exists = await lock.query('select 1 from pg_namespace where nspname = $1', [schema]);
    if (exists.rowCount === 0) await lock.query(`create schema ${pg.escapeIdentifier(schema)}`);
    const names = Object.keys(migrations);
    const applied = await appliedMigrations(pool);
    // A newer release has migrated. Kysely would call that corrupted, as it would folded migrations.
    if (applied.size > names.length && names.every((name) => applied.has(name))) return [];
    const newest = names.toSorted().at(-1) ?? '';
    const folded = [...applied].filter((name) => name < newest && !names.includes(name));
    if (folded.length > 0) await pool.query('delete from kysely_migration where name = any($1)', [folded]);
    const provider = { getMigrations: async () => ({ ...migrations }) };
    const { error, results = [] } = await new Migrator({ db, provider, migrationTableSchema: schema }).migrateToLatest();
    if (error) throw error;
    return results.map((result) => result.migrationName);
  } finally {
    await db.destroy();
    await lock.end();
  }
}

/** Reads the migrations of a folder, a file each, forward only. */
export function readMigrations(migrationFolder: string): Promise<Migrations> {
  return new FileMigrationProvider({ fs, path, migrationFolder, import: (file) => import(file) }).getMigrations();
}

/** Names of the migrations that a schema has. */
export async function appliedMigrations(pool: pg.Pool): Promise<ReadonlySet<string>> {
  try {
    const { rows } = await pool.query<{ name: string }>('select name from kysely_migration');
    return new Set(rows.map(({ name }) => name));
  } catch (err) {
    if (isMissingTable(err)) return new Set();
    throw err;
  }
}
