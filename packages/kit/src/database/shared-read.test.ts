import { openEmptyDatabase } from '@latchkey/testkit/postgres/database';
import { afterAll, expect, it, vi } from 'vitest';
import { openDatabase } from '../testing/databases.ts';
import { createSharedList, createSharedRead } from './shared-read.ts';

const database = await openEmptyDatabase(afterAll);

function openPool() {
  const { pool } = openDatabase(database.url);
  return { pool, query: vi.spyOn(pool, 'query') };
}

/** Reads the square of an even number; an odd one has no row. */
function open() {
  const { pool, query } = openPool();
  const select = 'select asked.a * asked.b as square where asked.a % 2 = 0';
  const readSquare = createSharedRead<{ square: number }>(pool, {
    name: 'square',
    key: { a: 'int', b: 'int' },
    select,
  });
  return { query, read: async (n: number) => (await readSquare(n, n))?.square };
}

it('the reads of one turn share a statement with each key once, and each gets its own row or none', async () => {
  const { query, read } = open();
  const numbers = [4, 3, 2, 4, -6];
  expect(await Promise.all(numbers.map(read))).toEqual([16, undefined, 4, 16, 36]);
  expect(query.mock.calls).toMatchObject([[{ values: Array(2).fill([4, 3, 2, -6]) }]]);
  expect(await read(4)).toBe(16);
  expect(query).toHaveBeenCalledTimes(2);
});

it('keys whose texts together are equal have their own rows', async () => {
  const { pool } = openPool();
  const readBoth = createSharedRead<{ both: string }>(pool, {
    name: 'both',
    key: { a: 'text', b: 'text' },
    select: `select asked.a || '|' || asked.b as both`,
  });
  const rows = await Promise.all([readBoth('a b', 'c'), readBoth('a', 'b c')]);
  expect(rows.map((row) => row?.both)).toEqual(['a b|c', 'a|b c']);
});

it('a statement has 500 keys at most', async () => {
  const { query, read } = open();
  const numbers = Array.from({ length: 501 }, (_, n) => n * 2);
  expect(await Promise.all(numbers.map(read))).toEqual(numbers.map((n) => n * n));
  expect(query).toHaveBeenCalledTimes(2);
});

it('the reads of a statement that fails fail with its error', async () => {
  const { read } = open();
  const results = await Promise.allSettled([read(2), read(2_000_000)]);
  expect(results).toMatchObject([{ reason: { code: '22003' } }, { reason: { code: '22003' } }]);
  expect(await read(2)).toBe(4);
});

it('keys of several rows share a statement, and each gets its own rows in order', async () => {
  const { pool, query } = openPool();
  const readSeries = createSharedList<{ i: number }>(pool, {
    name: 'series',
    key: { count: 'int', size: 'int' },
    select: 'select i from generate_series(1, asked.count) i order by i desc limit asked.size',
    keysMax: 2,
  });
  const read = async (count: number, size: number) => (await readSeries(count, size)).map(({ i }) => i);
  expect(await Promise.all([read(3, 2), read(0, 2), read(2, 5)])).toEqual([[3, 2], [], [2, 1]]);
  expect(query).toHaveBeenCalledTimes(2);
});
