import type pg from 'pg';
import { eventually } from '../eventually.ts';

const WAITING = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;

/** Waits until this many statements of a database wait for a lock. */
export async function waitersForLocks(db: pg.Pool | pg.Client, count: number): Promise<void> {
  await eventually(async () => (await db.query(WAITING)).rowCount === count, { timeoutMs: 15_000 });
}
