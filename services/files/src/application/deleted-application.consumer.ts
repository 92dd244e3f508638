import type { Transport } from '@connectrpc/connect';
import { followDeletions } from '@latchkey/deletions/follow-deletions';
import { selectHalfForgotten, selectUnmarked } from './deleted-application.store.ts';
import { type ForgetContext, forgetApplication } from './deleted-application.ts';

/** The event log's retention, after which a deletion's event is gone. */
const FIRST_REACH_MS = 24 * 3_600_000;
const HALF_FORGOTTEN_MAX = 100;

/** Where deletions come from. */
export interface DeletionSources {
  readonly redisUrl: string;
  readonly appsTransport: Transport;
}

/**
 * Removes the files of deleted applications.
 *
 * @param onObjectsToRemove called after each commit that leaves objects to remove
 */
export function createDeletionFollower(ctx: ForgetContext, sources: DeletionSources, onObjectsToRemove: () => void) {
  return followDeletions({
    ...sources,
    service: 'files',
    clock: ctx.clock,
    logger: ctx.logger,
    firstReachMs: FIRST_REACH_MS,
    selectUnfinished: () => selectHalfForgotten(ctx.db, HALF_FORGOTTEN_MAX),
    async selectPending(deleted) {
      const ids = deleted.map(({ applicationId }) => applicationId);
      const unmarked = await selectUnmarked(ctx.db, ids);
      return deleted.filter(({ applicationId }) => unmarked.has(applicationId));
    },
    forget: (application) => forgetApplication(ctx, application, onObjectsToRemove),
  });
}
