import DataLoader from 'dataloader';
import type pg from 'pg';

interface SharedReadOptions {
  /** Names the statement: each connection plans it once. */
  readonly name: string;
  /** Name and PostgreSQL type of each part of a key, like `{ id: 'uuid' }`. */
  readonly key: Readonly<Record<string, string>>;
  /** Selects the rows of the key `asked`, by an index: `… where id = asked.id`. */
  readonly select: string;
  /** Keys of one statement at most; 500 unless set. */
  readonly keysMax?: number;
}

const KEYS_MAX = 500;

/**
 * Returns a function that reads the row of a key, or undefined. The reads of one turn
 * of the event loop share a statement (ADR 17), so they also fail together: what PostgreSQL cannot
 * convert must be rejected before.
 */
export function createSharedRead<R extends object>(
  pool: pg.Pool,
  options: SharedReadOptions,
): (...key: readonly unknown[]) => Promise<R | undefined> {
  return createRead<R, R | undefined>(pool, options, (rows) => new Map(rows.map((row) => [Number(row.n), row])), undefined);
}

/** The same for keys of several rows each, in the order of the select. */
export function createSharedList<R extends object>(
  pool: pg.Pool,
  options: SharedReadOptions,
): (...key: readonly unknown[]) => Promise<readonly R[]> {
  return createRead<R, readonly R[]>(pool, options, (rows) => Map.groupBy(rows, ({ n }) => Number(n)), []);
}

type Numbered<R> = R & { readonly n: string };

function createRead<R extends object, V>(
  pool: pg.Pool,
  { name, key, select, keysMax = KEYS_MAX }: SharedReadOptions,
  arrange: (rows: Array<Numbered<R>>) => Map<number, V>,
  none: V,
) {
  const arrays = Object.values(key).map((type, index) => `$${index + 1}::${type}[]`);
  // OFFSET 0 leaves the planner one way: an index lookup for each key.
  const text = `select asked.n, found.* from unnest(${arrays}) with ordinality as asked (${Object.keys(key)}, n)
    cross join lateral (${select} offset 0) as found`;
  const loader = new DataLoader<readonly unknown[], V, string>(
    async (keys) => {
      // Equal keys of a turn share a row, and later ones read again.
      loader.clearAll();
      const values = arrays.map((_, part) => keys.map((parts) => parts[part]));
      const { rows } = await pool.query<Numbered<R>>({ name, text, values });
      const found = arrange(rows);
      return keys.map((_, index) => found.get(index + 1) ?? none);
    },
    { cacheKeyFn: textOf, maxBatchSize: keysMax, batchScheduleFn: setImmediate },
  );
  return (...key: readonly unknown[]): Promise<V> => loader.load(key);
}

/** Texts of PostgreSQL have no NUL, so that different keys have different texts. */
const textOf = (key: readonly unknown[]): string =>
  key.map((part) => (Buffer.isBuffer(part) ? part.toString('latin1') : part)).join('\0');
