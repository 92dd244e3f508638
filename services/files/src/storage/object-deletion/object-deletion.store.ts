import { sql } from 'kysely';
import type { Db } from '../../db/schema.ts';

/** Number of rows that a sweeper claims, and the length of its claim. */
export interface Claim {
  readonly limit: number;
  readonly claimMs: number;
}

/** A time from now by the database's clock, since the clocks of processes differ. */
export const afterMs = (ms: number) => sql<Date>`now() + make_interval(secs => ${ms / 1000})`;

/** Schedules the removal of objects, in the transaction that deletes their rows. */
export async function insertObjectDeletions(tx: Db, keys: readonly string[], delayMs = 0): Promise<void> {
  await sql`
    insert into object_deletion (object_key, due_at) select key, ${afterMs(delayMs)} from unnest(${keys}::text[]) as key
    on conflict do nothing`.execute(tx);
}

/** Claims objects that are due; concurrent sweepers claim different ones. */
export async function claimObjectDeletions(db: Db, { limit, claimMs }: Claim): Promise<string[]> {
  const { rows } = await sql<{ object_key: string }>`
    update object_deletion set due_at = ${afterMs(claimMs)}
    where object_key = any(array(
      select object_key from object_deletion where due_at <= now() order by due_at limit ${limit} for update skip locked))
    returning object_key`.execute(db);
  return rows.map((row) => row.object_key);
}

export async function deleteObjectDeletions(db: Db, keys: readonly string[]): Promise<void> {
  await sql`delete from object_deletion where object_key = any(${keys}::text[])`.execute(db);
}
