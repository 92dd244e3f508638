import { createHash, randomBytes } from 'node:crypto';
import { waitUntil } from '@latchkey/embedded/wait-until';
import { type Client, escapeIdentifier } from 'pg';
import { inject } from 'vitest';
import { DATABASE_PREFIX, TEMPLATE_PREFIX, TEST_ROLE } from './test-role.ts';
import { withClient } from './with-client.ts';
import './provided.ts';

/** PostgreSQL can't copy a database while another copy of it runs into a lock; any number will do that nobody else uses. */
const TEMPLATE_LOCK = 4_207_311;

export interface CreateTestDatabaseOptions {
  /** Names the schema: test files that give the same name share one migrated template. */
  schema: string;
  /** Brings an empty database to that schema; called once a run for each name. */
  migrate: (url: string) => Promise<unknown>;
}

/** A database of one test file's own. */
export interface TestDatabase {
  /** The URL of its owner, who is no superuser. */
  readonly url: string;
  readonly name: string;
  /** Removes it, ending whatever connections there are. */
  drop(): Promise<void>;
}

/**
 * Creates a database that is already migrated, in some 50 ms: the first file that asks for a schema migrates a template,
 * everybody copies that.
 *
 * @example
 * const database = await createTestDatabase({ schema: 'apps', migrate: (url) => migrateApps(url) });
 * afterAll(() => database.drop());
 */
export async function createTestDatabase({ schema, migrate }: CreateTestDatabaseOptions): Promise<TestDatabase> {
  const { postgresUrl } = inject('latchkeyTestServers');
  const name = DATABASE_PREFIX + randomBytes(8).toString('hex');
  await withClient(postgresUrl, async (client) => {
    // One lock for all: the copying itself is serial in PostgreSQL too, as is the making of a template.
    await client.query('SELECT pg_advisory_lock($1)', [TEMPLATE_LOCK]);
    const template = await ensureTemplate(client, schema, migrate);
    await client.query(`CREATE DATABASE ${name} OWNER ${TEST_ROLE} TEMPLATE ${template}`);
  });
  return { url: urlOf(name), name, drop: () => dropDatabase(postgresUrl, name) };
}

/** Creates a database without anything in it, for tests of migrations themselves. */
export async function createEmptyTestDatabase(): Promise<TestDatabase> {
  const { postgresUrl } = inject('latchkeyTestServers');
  const name = DATABASE_PREFIX + randomBytes(8).toString('hex');
  await withClient(postgresUrl, (client) => client.query(`CREATE DATABASE ${name} OWNER ${TEST_ROLE}`));
  return { url: urlOf(name), name, drop: () => dropDatabase(postgresUrl, name) };
}

async function ensureTemplate(client: Client, schema: string, migrate: CreateTestDatabaseOptions['migrate']): Promise<string> {
  const name = TEMPLATE_PREFIX + createHash('sha256').update(schema).digest('hex').slice(0, 16);
  const { rows } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [name]);
  if (rows.length > 0) return name;
  // Migrated under another name, so that a template that is there is also whole.
  const draft = DATABASE_PREFIX + randomBytes(8).toString('hex');
  await client.query(`CREATE DATABASE ${draft} OWNER ${TEST_ROLE}`);
  await migrate(urlOf(draft));
  await closeConnections(client, draft);
  await client.query(`ALTER DATABASE ${draft} RENAME TO ${name}`);
  return name;
}

function urlOf(name: string): string {
  const { postgresUrl, testRolePassword } = inject('latchkeyTestServers');
  const url = new URL(postgresUrl);
  url.username = TEST_ROLE;
  url.password = testRolePassword;
  url.pathname = `/${name}`;
  return url.href;
}

function dropDatabase(adminUrl: string, name: string): Promise<void> {
  return withClient(adminUrl, async (client) => {
    await closeConnections(client, name);
    await client.query(`DROP DATABASE IF EXISTS ${escapeIdentifier(name)} WITH (FORCE)`);
  });
}

/** How long a pool that was ended may take to close its connections, in milliseconds. */
const CLOSING_TIMEOUT_MS = 2_000;

/**
 * Waits until nobody is connected, then ends whoever still is: a database with connections can be neither renamed nor copied. `pg` says that a
 * pool has ended before its connections are closed, and one that is ended by force then has nobody to tell.
 */
async function closeConnections(client: Client, database: string): Promise<void> {
  const others = 'FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()';
  const isFree = async () => (await client.query(`SELECT 1 ${others}`, [database])).rowCount === 0;
  const free = await waitUntil(isFree, { timeoutMs: CLOSING_TIMEOUT_MS, intervalMs: 5 });
  if (!free) await client.query(`SELECT pg_terminate_backend(pid, 5000) ${others}`, [database]);
}
