import { eventually } from '@latchkey/testkit/eventually';
import { openEmptyDatabase } from '@latchkey/testkit/postgres/database';
import { type Kysely, sql } from 'kysely';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { openTcpProxy } from '../testing/databases.ts';
import { memoryLogger } from '../testing/memory-logger.ts';
import { createDataService } from './data-service.ts';
import { createDatabase } from './database.ts';
import { type Migrations, migrate } from './migrate.ts';

const create = (table: string) => ({
  up: async (db: Kysely<unknown>) => void (await sql`create table ${sql.table(table)} (id int)`.execute(db)),
});
const OLD = { '1_a': create('a') };
const NEW = { ...OLD, '2_b': create('b') };
const WAITS = 'the schema is not up to date: background work waits for its migration';

/** A service on an empty database, behind a proxy, and what happens to its parts. */
async function open({ migrations = NEW }: { migrations?: Migrations } = {}) {
  const database = await openEmptyDatabase();
  const proxy = await openTcpProxy(database.url);
  const { logger, messages } = memoryLogger();
  const { pool, close } = createDatabase<unknown>({ url: proxy.url, schema: 'shop', logger });
  const events: string[] = [];
  const service = createDataService({
    databaseUrl: database.url,
    schema: 'shop',
    pool,
    migrations,
    logger,
    routes: [],
    prepare: async () => void events.push('prepare'),
    background: [{ start: () => void events.push('start'), stop: async () => void events.push('stop') }],
    close: async () => {
      events.push('close');
      await close();
    },
  });
  onTestFinished(async () => void (events.includes('close') || (await service.stop())));
  return { url: database.url, proxy, pool, service, events, messages };
}

describe('a service with a database', () => {
  it('prepares, starts its background work, stops it, and closes what it used', async () => {
    const { service, events, messages } = await open();
    await service.migrate();
    await service.start();
    await service.stop();
    expect(events).toEqual(['prepare', 'start', 'stop', 'close']);
    expect(messages()).toEqual([]);
  });

  it('is ready, and starts its background work, once another process has migrated its schema, through an outage', async () => {
    const { url, proxy, pool, service, events, messages } = await open();
    await migrate(url, 'shop', OLD);
    await service.start();
    await expect(service.checkReady()).rejects.toThrow('not up to date');
    expect([events, messages()]).toEqual([['prepare'], [WAITS]]);
    await proxy.cut();
    await expect(service.checkReady()).rejects.toMatchObject({ reason: 'dependency_unavailable' });
    const query = vi.spyOn(pool, 'query');
    await eventually(() => query.mock.calls.length > 0);
    await migrate(url, 'shop', NEW);
    await proxy.restore();
    await eventually(() => expect(events).toEqual(['prepare', 'start']));
    await service.checkReady();
    expect(messages().filter((message) => message !== 'database connection lost')).toEqual([WAITS, 'the schema is up to date']);
  });

  it('is ready on the schema of a later release', async () => {
    const { url, service } = await open({ migrations: OLD });
    await migrate(url, 'shop', NEW);
    await service.checkReady();
  });

  it('is not ready while the database does not respond, and starts its background work all the same', async () => {
    const { url, proxy, service, events } = await open();
    await migrate(url, 'shop', NEW);
    await service.checkReady();
    proxy.freeze();
    await Promise.all([
      expect(service.checkReady()).rejects.toMatchObject({ reason: 'dependency_unavailable' }),
      service.start(),
    ]);
    expect(events).toEqual(['prepare', 'start']);
    await proxy.restore();
    await service.checkReady();
  });

  it('starts no background work after its stop', async () => {
    const { url, service, events } = await open();
    await service.start();
    await service.stop();
    await migrate(url, 'shop', NEW);
    expect(events).toEqual(['prepare', 'stop', 'close']);
  });
});
