import type { Transport } from '@connectrpc/connect';
import { followDeletions } from '@latchkey/deletions/follow-deletions';
import type { FilesContext } from '../../context.ts';
import { selectHalfDeleted, selectUnmarked } from './deleted-application.store.ts';
import { type CleanUpContext, cleanUpApplication, EVENT_LOG_HOURS } from './deleted-application.ts';

const HALF_DELETED_MAX = 100;

/**
 * Removes the files of deleted applications. Calls `onObjectsToRemove` after each commit that
 * leaves objects to remove.
 */
export function createDeletionFollower(
  ctx: CleanUpContext & Pick<FilesContext, 'clock'>,
  sources: { readonly redisUrl: string; readonly appsTransport: Transport },
  onObjectsToRemove: () => void,
) {
  return followDeletions({
    ...sources,
    service: 'files',
    clock: ctx.clock,
    logger: ctx.logger,
    firstReachMs: EVENT_LOG_HOURS * 3_600_000,
    selectUnfinished: () => selectHalfDeleted(ctx.db, HALF_DELETED_MAX),
    selectPending: (deleted) => selectUnmarked(ctx.db, deleted),
    forget: (application) => cleanUpApplication(ctx, application, onObjectsToRemove),
  });
}
