import { type Insertable, type Kysely, sql } from 'kysely';
import type pg from 'pg';
import type { PageStart } from '../application/application.store.ts';
import type { ApplicationEventTable, AppsDatabase } from '../db/schema.ts';

export type NewEventRow = Insertable<ApplicationEventTable>;

/** Adds a row to the event log. */
export async function insertEvent(db: Kysely<AppsDatabase>, row: NewEventRow): Promise<void> {
  await db.insertInto('application_event').values(row).execute();
}

/** An event for live clients. */
export interface SequencedEventRow {
  readonly id: string;
  readonly sequence: string;
  readonly type: string;
  readonly data: unknown;
  readonly created_at: Date;
}

/** Named: every node with live connections runs it after each gap. */
const SELECT_AFTER = {
  name: 'select-events-after',
  text: `select id, sequence, type, data, created_at from application_event
    where application_id = $1 and sequence > $2 order by sequence limit $3`,
};

/** The events of an application after a sequence, in order. */
export async function selectEventsAfter(pool: pg.Pool, applicationId: string, sequence: bigint, limit: number) {
  const { rows } = await pool.query<SequencedEventRow>({ ...SELECT_AFTER, values: [applicationId, sequence, limit] });
  return rows;
}

/** Deletions of all accounts in the event log, in order. */
export async function selectDeletions(
  db: Kysely<AppsDatabase>,
  page: { readonly since: Date | undefined; readonly after: PageStart | undefined; readonly limit: number },
) {
  const { since, after, limit } = page;
  let query = db
    .selectFrom('application_event')
    .select(['application_id', 'account_id', 'created_at'])
    // A literal, since a generic plan could not use the index of this type.
    .where('type', '=', sql.lit('deleted'))
    .orderBy('created_at')
    .orderBy('application_id')
    .limit(limit);
  if (since) query = query.where('created_at', '>=', since);
  if (after)
    query = query.where(({ eb, refTuple, tuple }) =>
      eb(refTuple('created_at', 'application_id'), '>', tuple(after.createdAt, after.id)),
    );
  return query.execute();
}

/** What shows whether the live clients of an application are up to date. */
export interface LiveStateRow {
  readonly id: string;
  readonly last_sequence: string;
  readonly socket_key_hash: Buffer;
}

/** Named: every node with live connections runs it every few seconds. */
const SELECT_LIVE_STATES = {
  name: 'select-live-states',
  text: 'select id, last_sequence, socket_key_hash from application where id = any($1::uuid[])',
};

/** The states of those of the applications that exist, in no order. */
export async function selectLiveStates(pool: pg.Pool, ids: readonly string[]): Promise<LiveStateRow[]> {
  const { rows } = await pool.query<LiveStateRow>({ ...SELECT_LIVE_STATES, values: [ids] });
  return rows;
}
