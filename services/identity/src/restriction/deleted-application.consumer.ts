import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { createClient, type Transport } from '@connectrpc/connect';
import { createCatchUp } from '@latchkey/kit/catch-up';
import { createQueueWorker, type QueueWorker } from '@latchkey/kit/queue-worker';
import type { Sweep } from '@latchkey/kit/sweeper';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { z } from 'zod';
import { selectListed } from './restriction.store.ts';
import { type DeletedApplication, type RestrictionContext, removeFromRestrictions } from './restriction.ts';

const deletionEvent = z.object({ applicationId: z.uuid(), accountId: z.uuid() });

/** Removes deleted applications from the restrictions of keys, as the queue announces them. */
export function createDeletionConsumer(ctx: RestrictionContext, redisUrl: string): QueueWorker {
  return createQueueWorker({
    url: redisUrl,
    queue: 'identity',
    name: 'latchkey-identity-deletions',
    concurrency: 2,
    logger: ctx.logger,
    async handle({ name, data }) {
      if (name === 'deleted') await removeFromRestrictions(ctx, deletionEvent.parse(data));
    },
  });
}

const LIST_TIMEOUT_MS = 2_000;
const PAGE_SIZE = 500;
/**
 * Covers clocks that differ, slow commits, and keys that were given a list while one of its
 * applications was being deleted: checked before the deletion, written after its job ran.
 */
const OVERLAP_MS = 5 * 60_000;

/** Reconciles deletions whose job Redis lost. The first run covers the whole event log. */
export function createDeletionReconciler(ctx: RestrictionContext, appsTransport: Transport): Sweep {
  const client = createClient(ApplicationService, appsTransport);
  async function* findListed(since: Date, signal: AbortSignal): AsyncGenerator<DeletedApplication> {
    let pageToken = '';
    do {
      const request = { deletedSince: timestampFromDate(since), pageSize: PAGE_SIZE, pageToken };
      const page = await client.listDeletedApplications(request, { timeoutMs: LIST_TIMEOUT_MS, signal });
      yield* await selectListed(ctx.db, page.applications);
      pageToken = page.nextPageToken;
    } while (pageToken !== '' && !signal.aborted);
  }
  return createCatchUp({
    clock: ctx.clock,
    firstLookMs: Number.POSITIVE_INFINITY,
    overlapMs: OVERLAP_MS,
    find: findListed,
    take: (application, signal) => removeFromRestrictions(ctx, application, signal),
  });
}
