import type pg from 'pg';
import { eventually } from '../eventually.ts';

const WAITING = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;

/** Waits until this many statements of a database wait for a lock. */
export async function waitersForLocks(db: pg.Pool | pg.Client, count: number): Promise<void> {
  await eventually(async () => (await db.query(WAITING)).rowCount === count, { timeoutMs: 15_000 });
}

/** Runs a statement that locks, and holds its locks until the returned function is called. */
export async function holdLocks(db: pg.Pool, text: string, values: unknown[] = []): Promise<(last?: string) => Promise<void>> {
  const client = await db.connect();
  await client.query('begin');
  await client.query(text, values);
  return async (last = 'select 1') => {
    await client.query(last);
    await client.query('commit');
    client.release();
  };
}
