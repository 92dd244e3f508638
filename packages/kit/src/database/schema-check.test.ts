import { createEmptyTestDatabase } from '@latchkey/testkit/database';
import { type Kysely, sql } from 'kysely';
import { expect, it, onTestFinished } from 'vitest';
import { memoryLogger } from '../testing/memory-logger.ts';
import { startProxy } from '../testing/tcp-proxy.ts';
import { createDatabase } from './database.ts';
import { migrate } from './migrate.ts';
import { createSchemaCheck } from './schema-check.ts';

const create = (table: string) => ({
  up: async (db: Kysely<unknown>) => void (await sql`create table ${sql.table(table)} (id int)`.execute(db)),
});
const OLD = { '1_a': create('a') };
const NEW = { ...OLD, '2_b': create('b') };

/** A service's pool on an empty database, behind a proxy. */
async function open() {
  const database = await createEmptyTestDatabase();
  const proxy = await startProxy(database.url);
  const { pool, close } = createDatabase<unknown>({ url: proxy.url, schema: 'shop', logger: memoryLogger().logger });
  onTestFinished(async () => {
    await close();
    await database.drop();
  });
  return { url: database.url, proxy, pool };
}

it('is not ready before the schema is there, nor before its last migration, and is ready then without a restart', async () => {
  const { url, pool } = await open();
  const checkReady = createSchemaCheck(pool, NEW);
  await expect(checkReady()).rejects.toThrow('not up to date');
  await migrate(url, 'shop', OLD);
  await expect(checkReady()).rejects.toThrow('not up to date');
  await migrate(url, 'shop', NEW);
  await expect(checkReady()).resolves.toBeUndefined();
});

it('is ready on the schema of a later release', async () => {
  const { url, pool } = await open();
  await migrate(url, 'shop', NEW);
  await expect(createSchemaCheck(pool, OLD)()).resolves.toBeUndefined();
});

it('is not ready while the database does not answer, also after it was', async () => {
  const { url, proxy, pool } = await open();
  await migrate(url, 'shop', NEW);
  const checkReady = createSchemaCheck(pool, NEW);
  await checkReady();
  proxy.freeze();
  await expect(checkReady()).rejects.toMatchObject({ reason: 'dependency_unavailable' });
  proxy.thaw();
  await expect(checkReady()).resolves.toBeUndefined();
});
