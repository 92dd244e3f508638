import { holdLocks } from '@latchkey/testkit/postgres/lock-waits';
import type pg from 'pg';
import type { OwnedRef } from './test-apps.ts';

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
export async function eventsOf(db: pg.Pool, { applicationId }: Pick<OwnedRef, 'applicationId'>): Promise<EventRow[]> {
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
export async function rowOf<T = unknown>(db: pg.Pool, { applicationId }: OwnedRef): Promise<Record<string, T> | undefined> {
  const { rows } = await db.query<Record<string, T>>('select * from application where id = $1', [applicationId]);
  return rows[0];
}

/** Holds the lock of an application's row. */
export const holdRow = (db: pg.Pool, { applicationId }: OwnedRef) =>
  holdLocks(db, 'select 1 from application where id = $1 for update', [applicationId]);

export async function undelivered(db: pg.Pool): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>('select id from application_event where delivered_at is null order by id');
  return rows.map(({ id }) => id);
}

/** Marks all events as delivered, as the relay does. */
export async function deliverAll(db: pg.Pool): Promise<void> {
  await db.query('update application_event set delivered_at = now() where delivered_at is null');
}

/**
 * Writes the events of this many changes of version, with their ids in the opposite order, and
 * returns their application.
 */
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

/** Writes the events of this many deletions, and returns their applications in order. */
export async function insertDeletions(db: pg.Pool, count: number): Promise<string[]> {
  const { rows } = await db.query<{ application_id: string }>(
    `insert into application_event (id, application_id, account_id, sequence, type, data, created_at)
      select gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 1, 'deleted', '{}', now() from generate_series(1, $1)
      returning application_id`,
    [count],
  );
  return rows.map((row) => row.application_id).sort();
}

/** Copies an application within its account. The copies have unknown keys. */
export async function insertCopies(db: pg.Pool, { accountId, applicationId }: OwnedRef, count: number): Promise<void> {
  await db.query(
    `insert into application (id, account_id, name, socket_key_hash, socket_key_sealed, http_key_hash, http_key_sealed,
        runtime_keys_updated_at, created_at)
      select gen_random_uuid(), $1, name, sha256((id || '/s' || i)::bytea), socket_key_sealed, sha256((id || '/h' || i)::bytea),
        http_key_sealed, runtime_keys_updated_at, created_at
      from application, generate_series(1, $3::int) i where id = $2`,
    [accountId, applicationId, count],
  );
}
