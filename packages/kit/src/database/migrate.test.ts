import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createEmptyTestDatabase } from '@latchkey/testkit/database';
import { withClient } from '@latchkey/testkit/with-client';
import { type Kysely, sql } from 'kysely';
import { expect, it, onTestFinished } from 'vitest';
import { migrate } from './migrate.ts';

const SCRIPT = fileURLToPath(new URL('../testing/migrate-process.ts', import.meta.url));

async function emptyDatabase(): Promise<string> {
  const database = await createEmptyTestDatabase();
  onTestFinished(() => database.drop());
  return database.url;
}

const run = (text: string) => ({ up: async (db: Kysely<unknown>) => void (await sql.raw(text).execute(db)) });
const create = (table: string) => run(`create table ${table} (id int)`);

it('applies each migration once when several processes migrate at the same time', async () => {
  const url = await emptyDatabase();
  const runs = Array.from({ length: 3 }, () => promisify(execFile)(process.execPath, [SCRIPT, url, 'shop']));
  const applied = (await Promise.all(runs)).flatMap(({ stdout }) => JSON.parse(stdout) as string[]);
  expect(applied).toEqual(['20250101_a', '20250102_b', '20250103_c']);
  const { rows } = await withClient(url, (client) => client.query('select count(*)::int as n from shop.a'));
  expect(rows).toEqual([{ n: 1 }]);
});

it('applies nothing twice, and only what is new', async () => {
  const url = await emptyDatabase();
  expect(await migrate(url, 'shop', { '1_a': create('a') })).toEqual(['1_a']);
  expect(await migrate(url, 'shop', { '1_a': create('a') })).toEqual([]);
  expect(await migrate(url, 'shop', { '1_a': create('a'), '2_b': create('b') })).toEqual(['2_b']);
});

it('keeps the schemas of services apart', async () => {
  const url = await emptyDatabase();
  const [one, two] = await Promise.all(['one', 'two'].map((schema) => migrate(url, schema, { '1_a': create('a') })));
  expect([one, two]).toEqual([['1_a'], ['1_a']]);
});

it('leaves nothing behind of a migration that fails, and can go on later', async () => {
  const url = await emptyDatabase();
  await expect(migrate(url, 'shop', { '1_a': create('a'), '2_b': run('select * from nowhere') })).rejects.toThrow('nowhere');
  expect(await migrate(url, 'shop', { '1_a': create('a'), '2_b': create('b') })).toEqual(['1_a', '2_b']);
});
