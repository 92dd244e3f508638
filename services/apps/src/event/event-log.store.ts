import { valuesOf } from '@latchkey/kit/database/columns';
import { createSharedList } from '@latchkey/kit/database/shared-read';
import type { CallContext } from '@latchkey/kit/log/request-context';
import type { EventPosition } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { sql } from 'kysely';
import type pg from 'pg';
import type { ApplicationRef } from '../application/application-ref.ts';
import type { Page } from '../application/page-token.ts';
import type { Db } from '../db/schema.ts';

/** A row of the event log, which outlives its application. */
export interface EventRow {
  readonly id: string;
  readonly application_id: string;
  readonly account_id: string;
  /** Null if live clients are not notified. */
  readonly sequence: string | null;
  readonly type: string;
  readonly data: unknown;
  readonly created_at: Date;
  /** The request that it came from, for the logs and traces of its consumers. */
  readonly call_origin: CallContext | null;
}

/** An event to insert, with JSON as text. */
type NewEvent = Pick<EventRow, 'id' | 'application_id' | 'account_id' | 'type' | 'created_at'> & {
  readonly sequence: number | null;
  readonly data: string;
  readonly call_origin: string | undefined;
};

/** @param events at least one */
export async function insertEvents(db: Db, events: readonly NewEvent[]): Promise<void> {
  await sql`insert into application_event ${valuesOf(...events)}`.execute(db);
}

/** The epoch of the event log, as a column. */
export const EPOCH = '(select epoch from event_log) as epoch';

/** Pages of events of one statement, of which each may have 1,000. */
const PAGES_MAX = 50;

export type LoggedRow = Pick<EventRow, 'id' | 'type' | 'data' | 'created_at'> & {
  readonly sequence: string;
  readonly epoch: string;
};

/**
 * Returns a function that reads a page of an application's events. Clients of many applications
 * reconnect together, so the reads of a turn share a statement.
 */
export const createEventReads = (
  pool: pg.Pool,
): ((applicationId: string, sequence: bigint, limit: number) => Promise<readonly LoggedRow[]>) =>
  createSharedList(pool, {
    name: 'select-events-after',
    key: { application_id: 'uuid', sequence: 'bigint', size: 'int' },
    select: `select id, sequence, type, data, created_at, ${EPOCH} from application_event e
      where e.application_id = asked.application_id and e.sequence > asked.sequence order by e.sequence limit asked.size`,
    keysMax: PAGES_MAX,
  });

/** Named: clients that pull events run it all the time. */
const SELECT_OWN_AFTER = {
  name: 'select-own-events-after',
  text: `select log.epoch, last_sequence, event.* from application cross join event_log log
    left join lateral (
      select id, sequence, type, data, created_at from application_event
      where application_id = $1 and sequence > case log.epoch when $3 then $4::bigint else 0 end order by sequence limit $5
    ) event on true
    where application.id = $1 and application.account_id = $2`,
};

/** An event, or nulls without one. */
type PulledRow = { readonly epoch: string; readonly last_sequence: string } & (LoggedRow | { readonly id: null });

/**
 * Events of an application after a position, in order; all retained ones, if the position is of
 * another epoch. At least one row, unless the account has no such application.
 */
export async function selectOwnEventsAfter(
  pool: pg.Pool,
  { accountId, applicationId }: ApplicationRef,
  { epoch, sequence }: Pick<EventPosition, 'epoch' | 'sequence'>,
  limit: number,
): Promise<PulledRow[]> {
  const values = [applicationId, accountId, epoch, sequence, limit];
  return (await pool.query<PulledRow>({ ...SELECT_OWN_AFTER, values })).rows;
}

/** Gives the event log another epoch, and returns it. */
export async function changeEpoch(db: Pick<pg.Pool, 'query'>): Promise<string> {
  const { rows } = await db.query<{ readonly epoch: string }>('update event_log set epoch = default returning epoch');
  return (rows[0] as { readonly epoch: string }).epoch;
}

/** Deletions of all accounts in the event log, in order. */
export async function selectDeletions(db: Db, since: Date | undefined, { after, limit }: Pick<Page, 'after' | 'limit'>) {
  const isSince = since ? sql`and created_at >= ${since}` : sql``;
  const isAfter = after ? sql`and (created_at, application_id) > (${after.createdAt}, ${after.id})` : sql``;
  // The type is a literal, since a generic plan could not use the index of this type.
  const { rows } = await sql<Pick<EventRow, 'application_id' | 'account_id'> & { readonly deleted_at: Date }>`
    select application_id, account_id, created_at as deleted_at from application_event where type = 'deleted' ${isSince} ${isAfter}
    order by created_at, application_id limit ${limit}`.execute(db);
  return rows;
}

/** Named: every node with live connections runs it every few seconds. */
const SELECT_LIVE_STATES = {
  name: 'select-live-states',
  // OFFSET 0 leaves the planner one way: an index look-up for each application.
  text: `select id, last_sequence, socket_key_hash, ${EPOCH}, previous.hash as previous_hash, expires_at from application
    left join lateral (
      select hash, expires_at from previous_runtime_key
      where application_id = id and type = 'socketKey' and expires_at > $2 offset 0
    ) as previous on true where id = any($1::uuid[])`,
};

type LiveStateRow = Readonly<Record<'id' | 'last_sequence' | 'epoch', string>> & {
  readonly socket_key_hash: Buffer;
} & ({ readonly previous_hash: Buffer; readonly expires_at: Date } | { readonly previous_hash: null });

/** States of live applications, with the previous socket key where one is accepted still. */
export async function selectLiveStates(pool: pg.Pool, ids: readonly string[], now: Date) {
  return (await pool.query<LiveStateRow>({ ...SELECT_LIVE_STATES, values: [ids, now] })).rows;
}
