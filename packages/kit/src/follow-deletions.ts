import { z } from 'zod';
import { createCatchUp } from './catch-up.ts';
import type { Logger } from './logger.ts';
import { createQueueWorker, type QueueWorker } from './queue-worker.ts';

/** A deletion as the event log and the queue announce it. Later releases may add to it. */
const deletion = z.object({ applicationId: z.uuid().toLowerCase(), accountId: z.uuid().toLowerCase() });

export type Deletion = z.output<typeof deletion>;

/** Concurrent jobs of one process. */
const CONCURRENCY = 2;

/** How a service follows deletions. */
export interface DeletionOptions {
  readonly redisUrl: string;
  /** Queue of this service's jobs. */
  readonly queue: string;
  /** Name of the connection to Redis. */
  readonly name: string;
  readonly logger: Logger;
  readonly clock: () => Date;
  /** How far the first reconciliation goes back, in milliseconds; Infinity for all the way. */
  readonly lookBackMs: number;
  /** How far each one goes back behind the one before, in milliseconds. */
  readonly overlapMs: number;
  /** A page of the deletions since a time, oldest first; the first for an empty token. */
  readonly listPage: (
    since: Date,
    pageToken: string,
    signal: AbortSignal,
  ) => Promise<{ readonly items: readonly Deletion[]; readonly nextPageToken: string }>;
  /** Those of a page that this service has not handled. */
  readonly selectPending: (items: readonly Deletion[]) => Promise<readonly Deletion[]>;
  /** Those whose handling was begun and maybe interrupted. */
  readonly selectInterrupted?: () => Promise<readonly Deletion[]>;
  /** Handles one; it may run again, and concurrently. */
  readonly handle: (found: Deletion, signal: AbortSignal) => Promise<void>;
}

/** Handles deletions that jobs announce, and those whose job was lost. */
export interface DeletionFollower {
  /** Handles jobs; the queue retries those that fail. */
  readonly worker: QueueWorker;
  /**
   * Handles deletions whose job was lost: Redis may lose jobs, PostgreSQL does not. Rejects when
   * something failed; the next one then goes as far back.
   */
  reconcile(signal: AbortSignal): Promise<void>;
}

/** Follows the deletions of applications. */
export function followDeletions(options: DeletionOptions): DeletionFollower {
  const { redisUrl: url, queue, name, logger, clock, lookBackMs, overlapMs, handle } = options;
  const worker = createQueueWorker({
    url,
    queue,
    name,
    concurrency: CONCURRENCY,
    logger,
    async handle(job) {
      if (job.name === 'deleted') await handle(deletion.parse(job.data), new AbortController().signal);
    },
  });
  const find = (since: Date, signal: AbortSignal) => findPending(options, since, signal);
  return { worker, reconcile: createCatchUp({ clock, firstLookMs: lookBackMs, overlapMs, find, take: handle }) };
}

async function* findPending(
  { listPage, selectPending, selectInterrupted }: DeletionOptions,
  since: Date,
  signal: AbortSignal,
): AsyncGenerator<Deletion> {
  if (selectInterrupted) yield* await selectInterrupted();
  let pageToken = '';
  do {
    const page = await listPage(since, pageToken, signal);
    yield* await selectPending(page.items);
    pageToken = page.nextPageToken;
  } while (pageToken !== '' && !signal.aborted);
}
