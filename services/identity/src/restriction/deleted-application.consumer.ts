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
