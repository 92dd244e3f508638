import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { createClient, type Transport } from '@connectrpc/connect';
import type { Logger } from '@latchkey/kit/log/logger';
import { createQueueWorker, type QueueWorker } from '@latchkey/kit/queue/worker';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import type { Sweep } from '@latchkey/kit/sweeper/sweeper';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { z } from 'zod';

export interface DeletedApplication {
  readonly applicationId: string;
  readonly accountId: string;
}

export interface FollowOptions {
  /** Name of the service and of its queue, to which the apps service adds events. */
  readonly service: string;
  readonly redisUrl: string;
  readonly appsTransport: Transport;
  readonly clock: () => Date;
  readonly logger: Logger;
  /** The given applications that the service has not forgotten. */
  readonly selectPending: (deleted: readonly DeletedApplication[]) => Promise<readonly DeletedApplication[]>;
  /** Applications that a stopped process has forgotten in part. None unless set. */
  readonly selectUnfinished?: () => Promise<readonly DeletedApplication[]>;
  /** Forgets an application. It must be idempotent, also when processes do it concurrently. */
  readonly forget: (application: DeletedApplication, signal?: AbortSignal) => Promise<void>;
}

/** Later releases may add properties to events. */
const deletionEvent = z.object({ applicationId: z.uuid().toLowerCase(), accountId: z.uuid().toLowerCase() });

const CONCURRENCY = 2;
const PAGE_SIZE = 500;
/** For clocks that differ, and for deletions and keys that took long to commit. */
const OVERLAP_MS = 5 * 60_000;
const FAILURES_MAX = 10;

/**
 * Forgets deleted applications in two ways: by a queue worker, promptly, and by a sweep that
 * reconciles with the apps service, as Redis may lose jobs. The first sweep reads all deletions
 * that are retained; each later one those since the start of the last complete one, less an
 * overlap.
 */
export function followDeletions(options: FollowOptions): { readonly worker: QueueWorker; readonly reconcile: Sweep } {
  const { service, redisUrl, appsTransport, clock, logger, selectPending, selectUnfinished, forget } = options;
  const client = createClient(ApplicationService, appsTransport);
  const worker = createQueueWorker({
    url: redisUrl,
    queue: service,
    name: `latchkey-${service}-deletions`,
    concurrency: CONCURRENCY,
    logger,
    async handle({ name, data }) {
      if (name === 'deleted') await forget(deletionEvent.parse(data));
    },
  });
  async function* findPending(since: Date | undefined, signal: AbortSignal) {
    yield* (await selectUnfinished?.()) ?? [];
    const request = { ...(since && { deletedSince: timestampFromDate(since) }), pageSize: PAGE_SIZE };
    let pageToken = '';
    do {
      const page = await client.listDeletedApplications(
        { ...request, pageToken },
        { timeoutMs: DEADLINES_MS.listDeletions, signal },
      );
      if (page.applications.length > 0) yield* await selectPending(page.applications);
      pageToken = page.nextPageToken;
    } while (pageToken !== '');
  }
  let completedAt: number | undefined;
  const reconcile: Sweep = async (signal) => {
    const now = clock().getTime();
    const since = completedAt === undefined ? undefined : new Date(completedAt - OVERLAP_MS);
    const failures: unknown[] = [];
    for await (const application of findPending(since, signal)) {
      if (signal.aborted) return;
      await forget(application, signal).catch((err: unknown) => void failures.push(err));
    }
    if (signal.aborted) return;
    if (failures.length > 0) throw new AggregateError(failures.slice(0, FAILURES_MAX), 'Some deleted applications remain');
    completedAt = now;
  };
  return { worker, reconcile };
}
