import type { Kysely, Transaction } from 'kysely';
import type { AppsDatabase } from '../db/schema.ts';
import {
  deleteSpans,
  deleteUnsequenced,
  type Kept,
  type Span,
  selectLoggedApplications,
  selectSpans,
  tryLockTrimming,
} from './retention.store.ts';

/** How long the log keeps events. */
export interface Retention {
  /** An event that is as old is not kept. */
  readonly eventHours: number;
  /** Newest events of each application that are kept, of those that live clients hear of. */
  readonly eventCount: number;
  /** A deletion is kept so long, and at least as long as other events, for services that were away when it happened. */
  readonly deletionDays: number;
}

/** What the log is trimmed with. */
export interface Trimming {
  readonly db: Kysely<AppsDatabase>;
  readonly clock: () => Date;
  readonly retention: Retention;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Applications looked at, and most events removed, in one transaction. */
export const APPLICATIONS_MAX = 500;
export const EVENTS_MAX = 1_000;
/** Comes before every id. */
const FIRST = '00000000-0000-0000-0000-000000000000';

/** Thrown out of a round that another process is in the middle of. */
class AnotherTrims extends Error {}

/**
 * Goes once through the applications that the log has events of, and removes what is no longer kept: of what live clients hear of, all but the newest and
 * young ones; of the rest, the old ones. Events that are on their way stay. It is done in transactions of some milliseconds that lock nothing but
 * rows they remove, and left to another process that is at it.
 *
 * @param signal ends it after the transaction under way
 */
export async function trimEvents(trimming: Trimming, signal: AbortSignal): Promise<void> {
  const kept = keptAt(trimming.clock(), trimming.retention);
  try {
    let after: string | undefined = FIRST;
    while (after !== undefined && !signal.aborted) after = await trimSome(trimming.db, kept, after, signal);
  } catch (err) {
    if (!(err instanceof AnotherTrims)) throw err;
  }
}

function keptAt(now: Date, { eventHours, eventCount, deletionDays }: Retention): Kept {
  const eventsAfter = new Date(now.getTime() - eventHours * HOUR_MS);
  const deletionsAfter = new Date(Math.min(now.getTime() - deletionDays * DAY_MS, eventsAfter.getTime()));
  return { eventsAfter, deletionsAfter, count: eventCount };
}

/** Trims the logs of the next applications after an id, and returns the id to go on after, or undefined when there are no more. */
async function trimSome(db: Kysely<AppsDatabase>, kept: Kept, after: string, signal: AbortSignal): Promise<string | undefined> {
  const { ids, spans } = await alone(db, async (tx) => {
    const found = await selectLoggedApplications(tx, after, APPLICATIONS_MAX);
    return { ids: found, spans: await selectSpans(tx, found, kept) };
  });
  for (const batch of batchesOf(spans)) {
    if (signal.aborted) return undefined;
    await alone(db, (tx) => deleteSpans(tx, batch, EVENTS_MAX));
  }
  let removed = EVENTS_MAX;
  while (removed === EVENTS_MAX && !signal.aborted)
    removed = await alone(db, (tx) => deleteUnsequenced(tx, ids, kept, EVENTS_MAX));
  return ids.length < APPLICATIONS_MAX ? undefined : ids.at(-1);
}

/** Runs a transaction that no other process runs one of at the same time. Throws {@link AnotherTrims} where one does. */
async function alone<T>(db: Kysely<AppsDatabase>, work: (tx: Transaction<AppsDatabase>) => Promise<T>): Promise<T> {
  return db.transaction().execute(async (tx) => {
    if (!(await tryLockTrimming(tx))) throw new AnotherTrims();
    return work(tx);
  });
}

/** The spans in their order, cut so that a batch has {@link EVENTS_MAX} events at most. */
function* batchesOf(spans: readonly Span[]): Generator<Span[]> {
  let batch: Span[] = [];
  let free = EVENTS_MAX;
  for (const { applicationId, first, before } of spans) {
    for (let from = first; from < before; ) {
      const to = Math.min(before, from + free);
      batch.push({ applicationId, first: from, before: to });
      free -= to - from;
      from = to;
      if (free > 0) continue;
      yield batch;
      batch = [];
      free = EVENTS_MAX;
    }
  }
  if (batch.length > 0) yield batch;
}
