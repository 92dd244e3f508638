import { sql } from 'kysely';
import type { Db } from '../db/schema.ts';
import { EPOCH, type EventRow } from '../event/event-log.store.ts';

export type UndeliveredRow = EventRow & { readonly epoch: string };

/** Locks the oldest undelivered events that no other relay has locked. */
export async function lockUndelivered(tx: Db, limit: number): Promise<UndeliveredRow[]> {
  const { rows } = await sql<UndeliveredRow>`
    select id, application_id, account_id, sequence, type, data, created_at, call_origin, ${sql.raw(EPOCH)}
    from application_event where delivered_at is null order by id limit ${limit} for update skip locked`.execute(tx);
  return rows;
}

const BACKLOG_MAX = 10_000;

/** The number of undelivered events, and the age of the oldest. */
export async function selectBacklog(db: Db): Promise<{ count: number; oldestSeconds: number }> {
  const query = sql<{ count: number; oldestSeconds: number }>`
    select count(*)::int as count, coalesce(extract(epoch from now() - min(created_at)), 0)::float8 as "oldestSeconds"
    from (select created_at from application_event where delivered_at is null order by id limit ${BACKLOG_MAX}::int) waiting`;
  const { rows } = await query.execute(db);
  return rows[0] ?? { count: 0, oldestSeconds: 0 };
}

export async function markDelivered(tx: Db, ids: readonly string[], now: Date): Promise<void> {
  await sql`update application_event set delivered_at = ${now} where id = any(${ids}::uuid[])`.execute(tx);
}
