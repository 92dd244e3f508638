import { readConfig } from '@latchkey/kit/config/settings';
import { BoundedClient } from '@latchkey/kit/database/database';
import { databaseUrlSetting, splitDatabaseUrl } from '@latchkey/kit/database/database-url';
import { createLogger } from '@latchkey/kit/log/logger';
import { orExit } from '@latchkey/kit/process/run-service';
import { escapeIdentifier, escapeLiteral } from 'pg';
import { z } from 'zod';

// Creates a role and a schema for each service in the database of ADMIN_DATABASE_URL, with the role
// and password of the service's URL. Safe to run again, also with another password. A role owns its
// schema and sees no other.

const databaseUrl = databaseUrlSetting.refine(
  (text) => roleOf(text).name !== '' && roleOf(text).password !== '',
  'must hold a role and its password',
);

const settings = z.object({
  /** Of a role that may create others. */
  ADMIN_DATABASE_URL: databaseUrl,
  APPS_DATABASE_URL: databaseUrl,
  FILES_DATABASE_URL: databaseUrl,
  IDENTITY_DATABASE_URL: databaseUrl,
});

const SCHEMAS = { apps: 'APPS_DATABASE_URL', files: 'FILES_DATABASE_URL', identity: 'IDENTITY_DATABASE_URL' } as const;

const config = orExit(() => readConfig(settings, process.env));
const client = new BoundedClient({
  connectionString: config.ADMIN_DATABASE_URL,
  connectionTimeoutMillis: 10_000,
  session: { statement_timeout: 30_000 },
});
try {
  await createRoles();
  process.stdout.write(`There are roles for ${Object.keys(SCHEMAS).join(', ')}.\n`);
} catch (err) {
  createLogger('database-roles', 'info').fatal({ err }, 'the roles could not be created');
  process.exitCode = 1;
}

async function createRoles(): Promise<void> {
  await client.connect();
  try {
    await client.query('BEGIN');
    // Concurrent runs would both create what is missing.
    await client.query(`SELECT pg_advisory_xact_lock(hashtext('latchkey database roles'))`);
    const { rows } = await client.query('SELECT current_database() AS name');
    const database = escapeIdentifier(rows[0]?.name ?? '');
    await client.query(`REVOKE ALL ON DATABASE ${database} FROM PUBLIC`);
    await client.query('REVOKE ALL ON SCHEMA public FROM PUBLIC');
    for (const [schema, setting] of Object.entries(SCHEMAS)) await ensureRole(database, schema, roleOf(config[setting]));
    await client.query('COMMIT');
  } finally {
    await client.end();
  }
}

/** Empty where the URL has none that can be read. */
function roleOf(text: string): { readonly name: string; readonly password: string } {
  try {
    const url = new URL(splitDatabaseUrl(text)[0] ?? '');
    return { name: decodeURIComponent(url.username), password: decodeURIComponent(url.password) };
  } catch {
    return { name: '', password: '' };
  }
}

async function ensureRole(database: string, schema: string, { name, password }: ReturnType<typeof roleOf>): Promise<void> {
  const role = escapeIdentifier(name);
  const { rowCount } = await client.query('SELECT 1 FROM pg_roles WHERE rolname = $1', [name]);
  if (rowCount === 0) await client.query(`CREATE ROLE ${role}`);
  await client.query(`ALTER ROLE ${role} WITH LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD ${escapeLiteral(password)}`);
  await client.query(`ALTER ROLE ${role} SET search_path = ${escapeIdentifier(schema)}`);
  await client.query(`GRANT CONNECT, TEMPORARY ON DATABASE ${database} TO ${role}`);
  await client.query(`CREATE SCHEMA IF NOT EXISTS ${escapeIdentifier(schema)} AUTHORIZATION ${role}`);
}
