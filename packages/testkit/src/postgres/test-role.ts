import { randomBytes } from 'node:crypto';
import { escapeIdentifier } from 'pg';
import { withClient } from './with-client.ts';

/** Owner of the tests' databases, and no superuser, so that tests notice a missing right. */
export const TEST_ROLE = 'tester';
export const DATABASE_PREFIX = 'test_';
export const TEMPLATE_PREFIX = 'template_';

/** Returns the password of the new role. */
export function createTestRole(adminUrl: string): Promise<string> {
  const password = randomBytes(16).toString('hex');
  return withClient(adminUrl, async (client) => {
    await client.query(`CREATE ROLE ${TEST_ROLE} LOGIN PASSWORD '${password}'`);
    return password;
  });
}

/** Drops every database and template of tests. */
export function dropTestDatabases(adminUrl: string): Promise<void> {
  return withClient(adminUrl, async (client) => {
    const { rows } = await client.query<{ datname: string }>(
      `SELECT datname FROM pg_database WHERE starts_with(datname, $1) OR (starts_with(datname, $2) AND datname NOT IN ('template0', 'template1'))`,
      [DATABASE_PREFIX, TEMPLATE_PREFIX],
    );
    for (const { datname } of rows) await client.query(`DROP DATABASE IF EXISTS ${escapeIdentifier(datname)} WITH (FORCE)`);
  });
}
