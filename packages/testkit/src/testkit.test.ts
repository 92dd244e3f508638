import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createEmptyTestDatabase, createTestDatabase } from './database.ts';
import { eventually } from './eventually.ts';
import { testRedis } from './redis.ts';
import { withClient } from './with-client.ts';

describe('a test database', () => {
  let migrations = 0;
  const migrate = (url: string) => {
    migrations += 1;
    return withClient(url, (client) => client.query('CREATE TABLE thing (id int)'));
  };
  const create = () => createTestDatabase({ schema: 'testkit-things', migrate });
  const databases: Awaited<ReturnType<typeof create>>[] = [];
  beforeAll(async () => {
    databases.push(...(await Promise.all([create(), create(), create()])));
  });
  afterAll(() => Promise.all(databases.map((database) => database.drop())));

  it('is migrated once however many ask at the same time', () => {
    expect(migrations).toBe(1);
  });

  it('shares no rows with another of the same schema', async () => {
    const counts = await Promise.all(
      databases.map(({ url }) =>
        withClient(url, async (client) => {
          await client.query('INSERT INTO thing VALUES (1)');
          return (await client.query('SELECT count(*)::int AS count FROM thing')).rows[0].count;
        }),
      ),
    );
    expect(counts).toEqual([1, 1, 1]);
  });

  it('belongs to a role without special rights', async () => {
    const [database] = databases;
    const { rows } = await withClient(database?.url ?? '', (client) =>
      client.query('SELECT rolsuper, rolcreaterole FROM pg_roles WHERE rolname = current_user'),
    );
    expect(rows).toEqual([{ rolsuper: false, rolcreaterole: false }]);
  });

  it('can be dropped while connections are open', async () => {
    const database = await createEmptyTestDatabase();
    await withClient(database.url, async (client) => {
      await database.drop();
      await expect(client.query('SELECT 1')).rejects.toThrow();
    });
    await expect(withClient(database.url, (client) => client.query('SELECT 1'))).rejects.toThrow('does not exist');
  });
});

describe('a test Redis', () => {
  it('is empty and seen by nobody else', async () => {
    const [one, other] = await Promise.all([testRedis(), testRedis()]);
    const [client, otherClient] = [new Redis(one.url), new Redis(other.url)];
    await client.set('key', 'value');
    expect(await otherClient.dbsize()).toBe(0);
    expect(one.keyPrefix).not.toBe(other.keyPrefix);
    await one.flush();
    expect(await client.dbsize()).toBe(0);
    client.disconnect();
    otherClient.disconnect();
  });
});

describe('eventually', () => {
  it('returns the first answer that comes without an error', async () => {
    let tries = 0;
    const answer = await eventually(() => {
      tries += 1;
      if (tries < 3) throw new Error('not yet');
      return tries;
    });
    expect(answer).toBe(3);
  });

  it('gives up with the last error', async () => {
    const failing = () => Promise.reject(new Error('never'));
    await expect(eventually(failing, { timeoutMs: 50 })).rejects.toThrow('never');
    await expect(eventually(() => false, { timeoutMs: 50 })).rejects.toThrow('still false after 50 ms');
  });
});
