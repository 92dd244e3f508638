import { SERVICE_ORIGIN } from '@latchkey/audit/actor';
import { recordAudit } from '@latchkey/audit/record';
import { type DeletedApplication, type FollowOptions, followDeletions } from '@latchkey/deletions/follow-deletions';
import { actionOn } from '../audit/actions.ts';
import type { IdentityContext } from '../context.ts';
import { removeFromLists, selectListed } from './restriction.store.ts';

type RestrictionContext = Pick<IdentityContext, 'db' | 'clock' | 'logger'>;

export function createDeletionFollower(ctx: RestrictionContext, sources: Pick<FollowOptions, 'redisUrl' | 'appsTransport'>) {
  return followDeletions({
    ...sources,
    service: 'identity',
    clock: ctx.clock,
    logger: ctx.logger,
    selectPending: (deleted) => selectListed(ctx.db, deleted),
    forget: (application, signal) => removeFromRestrictions(ctx, application, signal),
  });
}

/**
 * Removes a deleted application from the restrictions of its account's keys, revoked ones too. A
 * key left without applications stays restricted and can access none. It may be repeated and run
 * concurrently. No epoch ends: cached principals that still name the application open nothing, as
 * its id is never reused and the apps service answers for it before any restriction counts.
 */
export async function removeFromRestrictions(ctx: RestrictionContext, application: DeletedApplication, signal?: AbortSignal) {
  const { applicationId, accountId } = application;
  let keyCount = 0;
  while (!signal?.aborted) {
    const changed = await ctx.db.transaction().execute(async (tx) => {
      const keys = await removeFromLists(tx, application, ctx.clock());
      const entries = keys.map(({ id, name }) => ({
        ...actionOn({ accountId, apiKeyId: id }, 'api_key.application_removed', { applicationId, name }),
        applicationId,
      }));
      await recordAudit(tx, SERVICE_ORIGIN, ...entries);
      return keys.length;
    });
    // A partial batch may only mean that another process removes too.
    if (changed === 0) break;
    keyCount += changed;
  }
  if (keyCount > 0) ctx.logger.info({ applicationId, keyCount }, 'deleted application removed from restrictions of keys');
}
