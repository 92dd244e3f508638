import type { Logger } from '@latchkey/kit/log/logger';
import type { QueueJob } from '@latchkey/kit/queue/job';
import type { QueueProducer } from '@latchkey/kit/queue/producer';
import type { PublishedEvent } from '@latchkey/kit/redis/live-channels';
import { createSweeper, type Sweeper } from '@latchkey/kit/sweeper/sweeper';
import { Gauge, watchProbe } from '@latchkey/kit/telemetry/metrics';
import type { Db } from '../db/schema.ts';
import { lockUndelivered, markDelivered, selectBacklog, type UndeliveredRow } from './relay.store.ts';

/** The queues of deletions, after which files and identity clean up. */
export const QUEUES = ['files', 'identity'];

const BATCH_MAX = 100;

/** Interval of the polls for events of processes that have died, in milliseconds. */
const POLL_INTERVAL_MS = 1_000;

interface Delivery {
  readonly db: Db;
  /** Publishes events to the nodes with sockets. Throws when Redis did not take all of them. */
  readonly publish: (events: readonly PublishedEvent[]) => Promise<void>;
  readonly producer: Pick<QueueProducer, 'add'>;
  readonly clock: () => Date;
}

const waitingEvents = new Gauge({
  name: 'latchkey_outbox_waiting_events',
  help: 'Events that are not delivered yet, counted up to 10,000. Every apps process reports all of them.',
});

const oldestEvent = new Gauge({
  name: 'latchkey_outbox_oldest_seconds',
  help: 'Age in seconds of the oldest event that is not delivered yet; 0 without such an event.',
});

/**
 * Delivers events from the log when woken, and by polling. Any number of processes may share a log.
 */
export function createRelay(delivery: Delivery, logger: Logger): Sweeper {
  const deliverAll = async (signal: AbortSignal) => {
    while ((await deliverBatch(delivery)) === BATCH_MAX && !signal.aborted);
  };
  const sweeper = createSweeper({ intervalMs: POLL_INTERVAL_MS, logger, sweeps: { outbox: deliverAll } });
  const unwatch = watchProbe('outbox', () => selectBacklog(delivery.db), [
    [waitingEvents, ({ count }) => [[count]]],
    [oldestEvent, ({ oldestSeconds }) => [[oldestSeconds]]],
  ]);
  return {
    ...sweeper,
    stop() {
      unwatch();
      return sweeper.stop();
    },
  };
}

/**
 * Publishes the oldest undelivered events, those of one application in order of `sequence`, adds
 * the jobs of deletions, then marks the events. After a failure in between, all of it is done
 * again, the jobs under the same ids, so that every event is delivered at least once.
 *
 * @returns the number of events
 */
async function deliverBatch({ db, publish, producer, clock }: Delivery): Promise<number> {
  return db.transaction().execute(async (tx) => {
    const rows = await lockUndelivered(tx, BATCH_MAX);
    if (rows.length === 0) return 0;
    // Ids are ordered by the clocks of different processes. Events without a sequence go first.
    const inOrder = rows.toSorted((a, b) => Number(a.sequence) - Number(b.sequence));
    await publish(inOrder.map(toMessage));
    const jobs = inOrder.filter(({ type }) => type === 'deleted').map(toJob);
    // A full queue takes none (`false`), which is ignored: its consumer reconciles missed events
    // (ADR 6).
    if (jobs.length > 0) for (const queue of QUEUES) await producer.add(queue, jobs);
    const ids = rows.map(({ id }) => id);
    await markDelivered(tx, ids, clock());
    return rows.length;
  });
}

function toMessage(row: UndeliveredRow): PublishedEvent {
  const { id, application_id: applicationId, type, epoch, sequence, data, created_at } = row;
  return { id, applicationId, type, epoch, sequence, data, createdAt: created_at.toISOString() };
}

function toJob(row: UndeliveredRow): QueueJob {
  return {
    id: row.id,
    name: row.type,
    data: { ...toMessage(row), accountId: row.account_id },
    // Undefined would mean the request that happens to run now.
    context: row.call_origin ?? undefined,
  };
}
