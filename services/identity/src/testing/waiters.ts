import type pg from 'pg';

/** Whether so many statements of this database wait for a lock. */
export async function waitersForLocks(db: pg.Pool, count: number): Promise<boolean> {
  const { rows } = await db.query(
    `select count(*)::int as count from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return rows[0].count === count;
}
