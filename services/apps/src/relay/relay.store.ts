import { type Selectable, sql } from 'kysely';
import type { ApplicationEventTable, Db } from '../db/schema.ts';

export type EventRow = Omit<Selectable<ApplicationEventTable>, 'delivered_at'> & { readonly epoch: string };

/** Locks the oldest undelivered events that no other relay has locked. */
export async function lockUndelivered(tx: Db, limit: number): Promise<EventRow[]> {
  return tx
    .selectFrom('application_event')
    .select(['id', 'application_id', 'account_id', 'sequence', 'type', 'data', 'created_at', 'call_origin'])
    .select((eb) => eb.selectFrom('event_log').select('epoch').$asScalar().$notNull().as('epoch'))
    .where('delivered_at', 'is', null)
    .orderBy('id')
    .limit(limit)
    .forUpdate()
    .skipLocked()
    .execute();
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
  await tx.updateTable('application_event').set({ delivered_at: now }).where(sql<boolean>`id = any(${ids}::uuid[])`).execute();
}
