import { sql } from 'kysely';
import type { Db } from '../db/schema.ts';

export async function selectTime(db: Db): Promise<Date> {
  const { rows } = await sql<{ now: Date }>`select clock_timestamp() as now`.execute(db);
  return rows[0]?.now ?? new Date();
}
