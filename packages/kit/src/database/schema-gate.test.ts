import { createEmptyTestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { type Kysely, sql } from 'kysely';
import { expect, it, onTestFinished } from 'vitest';
import { memoryLogger } from '../testing/memory-logger.ts';
import { startProxy } from '../testing/tcp-proxy.ts';
import { createDatabase } from './database.ts';
import { migrate } from './migrate.ts';
import { createSchemaGate } from './schema-gate.ts';

const create = (table: string) => ({
  up: async (db: Kysely<unknown>) => void (await sql`create table ${sql.table(table)} (id int)`.execute(db)),
});
const OLD = { '1_a': create('a') };
const NEW = { ...OLD, '2_b': create('b') };
const WAITS = 'the schema is not up to date: work behind the scenes waits for its migration';

/** A gate on an empty database, behind a proxy. */
async function open() {
  const database = await createEmptyTestDatabase();
  const proxy = await startProxy(database.url);
  const { logger, lines } = memoryLogger();
  const { pool, close } = createDatabase<unknown>({ url: proxy.url, schema: 'shop', logger });
  const gate = createSchemaGate(pool, NEW, logger);
  onTestFinished(async () => {
    await gate.close();
    await close();
    await database.drop();
  });
  const begun: string[] = [];
  return {
    url: database.url,
    proxy,
    gate,
    begun,
    begin: () => void begun.push('begun'),
    said: () => lines.map(({ msg }) => msg),
  };
}

it('begins at once, without a word, where the schema is up to date', async () => {
  const { url, gate, begun, begin, said } = await open();
  await migrate(url, 'shop', NEW);
  await gate.open(begin);
  expect([begun, said()]).toEqual([['begun'], []]);
});

it.each([
  ['there is no schema', {}],
  ['the schema is that of the release before', OLD],
])('waits, saying so once, while %s, and begins when another has migrated it', async (_title, before) => {
  const { url, gate, begun, begin, said } = await open();
  await migrate(url, 'shop', before);
  await gate.open(begin);
  expect([begun, said()]).toEqual([[], [WAITS]]);
  await migrate(url, 'shop', NEW);
  await eventually(() => expect(begun).toEqual(['begun']));
  expect(said()).toEqual([WAITS, 'the schema is up to date']);
});

it('goes on waiting through an outage of the database', async () => {
  const { url, proxy, gate, begun, begin, said } = await open();
  await gate.open(begin);
  proxy.freeze();
  await migrate(url, 'shop', NEW);
  proxy.thaw();
  await eventually(() => expect(begun).toEqual(['begun']), { timeoutMs: 15_000 });
  expect(said().filter((msg) => msg === WAITS)).toHaveLength(1);
}, 20_000);

it('begins where the database does not answer, as what is begun has to bear that', async () => {
  const { proxy, gate, begun, begin } = await open();
  proxy.freeze();
  await gate.open(begin);
  expect(begun).toEqual(['begun']);
  proxy.thaw();
}, 20_000);

it('begins nothing any more once it is closed', async () => {
  const { url, gate, begun, begin } = await open();
  await gate.open(begin);
  await gate.close();
  await migrate(url, 'shop', NEW);
  await gate.open(begin);
  expect(begun).toEqual([]);
});
