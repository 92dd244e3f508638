import type { Insertable, Kysely } from 'kysely';
import type { ApplicationEventTable, AppsDatabase } from '../db/schema.ts';

export type NewEventRow = Insertable<ApplicationEventTable>;

/** Adds a row to the event log. */
export async function insertEvent(db: Kysely<AppsDatabase>, row: NewEventRow): Promise<void> {
  await db.insertInto('application_event').values(row).execute();
}
