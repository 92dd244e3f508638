import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type EmbeddedPostgres, startPostgres } from './postgres.ts';
import { ensureServiceDatabases } from './service-databases.ts';
import { createDataDir } from './testing/launcher.ts';

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

describe("the services' parts of the database", () => {
  let dir: Awaited<ReturnType<typeof createDataDir>>;
  let postgres: EmbeddedPostgres;
  beforeAll(async () => {
    dir = await createDataDir();
    postgres = await startPostgres({ dataDir: dir.path, durable: false });
  });
  afterAll(async () => {
    await postgres.stop();
    await dir.remove();
  });

  it('are each a schema of a role of its own, which is the default for its tables', async () => {
    const urls = await ensureServiceDatabases(postgres, ['identity', 'apps']);
    await query(urls.identity, 'CREATE TABLE account (id int)');
    const where = `SELECT schemaname, tableowner FROM pg_tables WHERE tablename = 'account'`;
    expect(await query(urls.identity, where)).toEqual([{ schemaname: 'identity', tableowner: 'identity' }]);
  });

  it('are closed to the other services', async () => {
    const urls = await ensureServiceDatabases(postgres, ['identity', 'apps']);
    await query(urls.identity, 'CREATE TABLE IF NOT EXISTS secret (id int)');
    await expect(query(urls.apps, 'SELECT * FROM identity.secret')).rejects.toThrow('permission denied for schema identity');
    await expect(query(urls.apps, 'CREATE TABLE public.t (id int)')).rejects.toThrow('permission denied for schema public');
    await expect(query(urls.apps, 'CREATE TABLE identity.t (id int)')).rejects.toThrow('permission denied for schema identity');
  });

  it('stay as they are when asked for again, and gain new ones', async () => {
    const before = await ensureServiceDatabases(postgres, ['identity', 'apps']);
    const after = await ensureServiceDatabases(postgres, ['identity', 'apps', 'files']);
    expect(after).toMatchObject(before);
    expect(await query(after.files, 'SELECT current_schema AS schema')).toEqual([{ schema: 'files' }]);
  });
});
