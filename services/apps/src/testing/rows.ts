import { eventually } from '@latchkey/testkit/eventually';
import type pg from 'pg';

/** An event as its row has it. */
export interface EventRow {
  readonly id: string;
  readonly account_id: string;
  readonly sequence: string | null;
  readonly type: string;
  readonly data: Record<string, unknown>;
  readonly created_at: Date;
}

/** The events of an application in the order they were written. */
export async function eventsOf(db: pg.Pool, applicationId: string): Promise<EventRow[]> {
  const { rows } = await db.query<EventRow>(
    'select id, account_id, sequence, type, data, created_at from application_event where application_id = $1 order by id',
    [applicationId],
  );
  return rows;
}

/** Every row of every table of the service as text, to see that nothing changed. */
export async function everything(db: pg.Pool): Promise<string[]> {
  const { rows } = await db.query<{ row: string }>(
    'select a::text as row from application a union all select e::text from application_event e order by 1',
  );
  return rows.map(({ row }) => row);
}

/** The row of an application, with whatever columns there are. */
export async function rowOf<T = unknown>(db: pg.Pool, applicationId: string): Promise<Record<string, T> | undefined> {
  const { rows } = await db.query<Record<string, T>>('select * from application where id = $1', [applicationId]);
  return rows[0];
}

/** Waits until so many statements of this database wait for a row that somebody else holds. */
export async function waitersForLocks(db: pg.Pool, count: number): Promise<void> {
  await eventually(async () => {
    const { rows } = await db.query<{ count: number }>(
      "select count(*)::int from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    return rows[0]?.count === count;
  });
}

/** The ids of the events that are on their way, in their order. */
export async function undelivered(db: pg.Pool): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>('select id from application_event where delivered_at is null order by id');
  return rows.map(({ id }) => id);
}

/** Marks all events as delivered, as the relay does. */
export async function deliverAll(db: pg.Pool): Promise<void> {
  await db.query('update application_event set delivered_at = now() where delivered_at is null');
}

/** Writes events of one application as if it had changed its version so often, their ids in the opposite order, and returns the application. */
export async function insertVersionChanges(db: pg.Pool, count: number, at = new Date()): Promise<string> {
  const { rows } = await db.query<{ application_id: string }>(
    `insert into application_event (id, application_id, account_id, sequence, type, data, created_at)
      select (lpad(to_hex($1 - i), 8, '0') || substr(application_id::text, 9))::uuid, application_id, gen_random_uuid(), i, 'version_changed', '{}', $2
      from (select gen_random_uuid() as application_id) a, generate_series(1, $1::int) i
      returning application_id`,
    [count, at],
  );
  return rows[0]?.application_id ?? '';
}

/** Writes events of deletions as if so many applications had been deleted, and returns the applications in order. */
export async function insertDeletions(db: pg.Pool, count: number): Promise<string[]> {
  const { rows } = await db.query<{ application_id: string }>(
    `insert into application_event (id, application_id, account_id, sequence, type, data, created_at)
      select gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 1, 'deleted', '{}', now() from generate_series(1, $1)
      returning application_id`,
    [count],
  );
  return rows.map((row) => row.application_id).sort();
}
