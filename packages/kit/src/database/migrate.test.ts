import { openEmptyDatabase } from '@latchkey/testkit/postgres/database';
import { waitersForLocks } from '@latchkey/testkit/postgres/lock-waits';
import { withClient } from '@latchkey/testkit/postgres/with-client';
import { type Kysely, sql } from 'kysely';
import { expect, it } from 'vitest';
import { migrate } from './migrate.ts';

const run = (text: string) => ({ up: async (db: Kysely<unknown>) => void (await sql.raw(text).execute(db)) });
const create = (table: string) => run(`create table ${table} (id int)`);

it('applies each migration once where eight processes start together on an empty database', async () => {
  const { url } = await openEmptyDatabase();
  const migrations = { '1_a': create('a'), '2_b': run('insert into a values (1)'), '3_c': create('c') };
  const calls = await withClient(url, async (client) => {
    // Until this ends, no call finds the schema, and none can create it.
    await client.query('begin; create schema shop');
    const started = Array.from({ length: 8 }, () => migrate(url, 'shop', migrations));
    await withClient(url, (other) => waitersForLocks(other, 8));
    await client.query('rollback');
    return Promise.allSettled(started);
  });
  const applied = calls.map((call) => (call.status === 'fulfilled' ? call.value : `${call.reason}`));
  expect(applied.filter((names) => names.length > 0)).toEqual([['1_a', '2_b', '3_c']]);
  const { rows } = await withClient(url, (client) => client.query('select * from shop.a'));
  expect(rows).toEqual([{ id: 1 }]);
});

it('undoes a run that fails, and applies only what is new later', async () => {
  const { url } = await openEmptyDatabase();
  await expect(migrate(url, 'shop', { '1_a': create('a'), '2_b': run('select * from nowhere') })).rejects.toThrow('nowhere');
  expect(await migrate(url, 'shop', { '1_a': create('a') })).toEqual(['1_a']);
  expect(await migrate(url, 'shop', { '1_a': create('a'), '2_b': create('b') })).toEqual(['2_b']);
});

it('leaves the schema of a newer release as it is, and rejects one that lacks a migration', async () => {
  const { url } = await openEmptyDatabase();
  const [a, b, c] = [create('a'), create('b'), create('c')];
  await migrate(url, 'shop', { '1_a': a, '3_c': c });
  expect(await migrate(url, 'shop', { '1_a': a })).toEqual([]);
  await expect(migrate(url, 'shop', { '1_a': a, '2_b': b })).rejects.toThrow('corrupted migrations');
});

it('updates a schema whose later migrations were folded into its first', async () => {
  const { url } = await openEmptyDatabase();
  await migrate(url, 'shop', { '1_a': create('a'), '2_b': create('b') });
  const folded = { '1_a': run('create table a (id int); create table b (id int)') };
  expect(await migrate(url, 'shop', { ...folded, '3_c': create('c') })).toEqual(['3_c']);
});
