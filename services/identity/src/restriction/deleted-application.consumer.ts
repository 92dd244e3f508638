import type { Transport } from '@connectrpc/connect';
import { followDeletions } from '@latchkey/deletions/follow-deletions';
import { selectListed } from './restriction.store.ts';
import { type RestrictionContext, removeFromRestrictions } from './restriction.ts';

/** Where deletions come from. */
export interface DeletionSources {
  readonly redisUrl: string;
  readonly appsTransport: Transport;
}

/** Removes deleted applications from the restrictions of keys. */
export function createDeletionFollower(ctx: RestrictionContext, sources: DeletionSources) {
  return followDeletions({
    ...sources,
    service: 'identity',
    clock: ctx.clock,
    logger: ctx.logger,
    // Keys may name applications that were deleted before this release.
    firstReachMs: Number.POSITIVE_INFINITY,
    selectPending: (deleted) => selectListed(ctx.db, deleted),
    forget: (application, signal) => removeFromRestrictions(ctx, application, signal),
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
