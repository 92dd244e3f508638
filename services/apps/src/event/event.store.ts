import type { Insertable, Kysely } from 'kysely';
import type pg from 'pg';
import type { ApplicationEventTable, AppsDatabase } from '../db/schema.ts';

export type NewEventRow = Insertable<ApplicationEventTable>;

/** Adds a row to the event log. */
export async function insertEvent(db: Kysely<AppsDatabase>, row: NewEventRow): Promise<void> {
  await db.insertInto('application_event').values(row).execute();
}

/** An event that live clients hear of. */
export interface SequencedEventRow {
  readonly id: string;
  readonly sequence: string;
  readonly type: string;
  readonly data: unknown;
  readonly created_at: Date;
}

/** Named, since every node that holds live connections asks it after each gap. */
const SELECT_AFTER = {
  name: 'select-events-after',
  text: `select id, sequence, type, data, created_at from application_event
    where application_id = $1 and sequence > $2 order by sequence limit $3`,
};

/** The events of an application that come after a sequence, in their order, up to `limit`. */
export async function selectEventsAfter(
  pool: pg.Pool,
  applicationId: string,
  sequence: bigint,
  limit: number,
): Promise<SequencedEventRow[]> {
  const { rows } = await pool.query<SequencedEventRow>({ ...SELECT_AFTER, values: [applicationId, sequence, limit] });
  return rows;
}
