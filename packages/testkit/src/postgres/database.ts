import { createHash, randomBytes } from 'node:crypto';
import { waitUntil } from '@latchkey/embedded/process/wait-until';
import { type Client, escapeIdentifier } from 'pg';
import { inject, onTestFinished } from 'vitest';
import { DATABASE_PREFIX, TEMPLATE_PREFIX, TEST_ROLE } from './test-role.ts';
import { withClient } from './with-client.ts';
import '../vitest/test-servers.ts';

/** An arbitrary advisory lock: PostgreSQL cannot copy one database twice concurrently. */
const TEMPLATE_LOCK = 4_207_311;

type Migrate = (url: string) => Promise<unknown>;

export interface TestDatabase {
  /** With its owner's role, which is not a superuser. */
  readonly url: string;
  readonly name: string;
  /** Drops it and ends its connections. */
  drop(): Promise<void>;
}

/**
 * Creates a migrated database in about 50 ms: the first call for a schema in a run migrates a
 * template, which all test files copy.
 */
export function createTestDatabase({ schema, migrate }: { schema: string; migrate: Migrate }): Promise<TestDatabase> {
  return create(async (client) => {
    await client.query('SELECT pg_advisory_lock($1)', [TEMPLATE_LOCK]);
    return `TEMPLATE ${await ensureTemplate(client, schema, migrate)}`;
  });
}

/** Creates an empty database, for tests of migrations. */
export const createEmptyTestDatabase = (): Promise<TestDatabase> => create(async () => '');

/** An empty database until the test ends; with `afterAll`, until its file does. */
export async function openEmptyDatabase(atEnd: (drop: () => Promise<void>) => void = onTestFinished): Promise<TestDatabase> {
  const database = await createEmptyTestDatabase();
  atEnd(() => database.drop());
  return database;
}

async function create(prepareTemplate: (client: Client) => Promise<string>): Promise<TestDatabase> {
  const { postgresUrl } = inject('latchkeyTestServers');
  const name = DATABASE_PREFIX + randomBytes(8).toString('hex');
  await withClient(postgresUrl, async (client) => {
    const template = await prepareTemplate(client);
    await client.query(`CREATE DATABASE ${name} OWNER ${TEST_ROLE} ${template}`);
  });
  return { url: urlOf(name), name, drop: () => dropDatabase(postgresUrl, name) };
}

async function ensureTemplate(client: Client, schema: string, migrate: Migrate): Promise<string> {
  const name = TEMPLATE_PREFIX + createHash('sha256').update(schema).digest('hex').slice(0, 16);
  const { rows } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [name]);
  if (rows.length > 0) return name;
  // Migrated under another name, so that an existing template is complete.
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

/** Ends the connections to a database: `pg` closes those of ended pools late. */
async function closeConnections(client: Client, database: string): Promise<void> {
  const others = 'FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()';
  const isFree = async () => (await client.query(`SELECT 1 ${others}`, [database])).rowCount === 0;
  const free = await waitUntil(isFree, { timeoutMs: 2_000, intervalMs: 5 });
  if (!free) await client.query(`SELECT pg_terminate_backend(pid, 5000) ${others}`, [database]);
}
