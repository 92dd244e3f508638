import type { QueueJob } from '@latchkey/kit/queue';
import type { QueueProducer } from '@latchkey/kit/queue-producer';
import type { Kysely } from 'kysely';
import type { AppsDatabase } from '../db/schema.ts';
import { CONSUMERS, QUEUES } from './consumers.ts';
import { type EventRow, lockUndelivered, markDelivered } from './relay.store.ts';

/** Most events delivered in one transaction. */
export const BATCH_MAX = 100;

/** What events are delivered with. */
export interface Delivery {
  readonly db: Kysely<AppsDatabase>;
  readonly producer: Pick<QueueProducer, 'add'>;
  readonly clock: () => Date;
}

/**
 * Adds a job for each of the oldest undelivered events to the queues that want it, those of one application in order of `sequence`, then marks the events.
 * When that is cut short in between, the jobs are added again under the same ids, so that every event is delivered at least once.
 *
 * @returns how many were delivered; fewer than {@link BATCH_MAX} when there are no more
 */
export async function deliverBatch({ db, producer, clock }: Delivery): Promise<number> {
  return db.transaction().execute(async (tx) => {
    const rows = await lockUndelivered(tx, BATCH_MAX);
    if (rows.length === 0) return 0;
    // Ids are in the order of the clocks of the processes that made them, which may differ. What has no sequence goes first.
    const inOrder = rows.toSorted((a, b) => Number(a.sequence) - Number(b.sequence));
    for (const queue of QUEUES) {
      const jobs = inOrder.filter(({ type }) => CONSUMERS[queue]?.has(type)).map(toJob);
      // A full queue takes none: whoever comes to work on it again looks for what it has missed (ADR 6).
      if (jobs.length > 0) await producer.add(queue, jobs);
    }
    const ids = rows.map(({ id }) => id);
    await markDelivered(tx, ids, clock());
    return rows.length;
  });
}

/** The event as its consumers get it. */
function toJob(row: EventRow): QueueJob {
  return {
    id: row.id,
    name: row.type,
    data: {
      id: row.id,
      applicationId: row.application_id,
      accountId: row.account_id,
      type: row.type,
      sequence: row.sequence,
      data: row.data,
      createdAt: row.created_at.toISOString(),
    },
    // The request is long over, and nothing else is under way here.
    origin: row.call_origin ?? undefined,
  };
}
