import { SERVICE_ORIGIN } from '@latchkey/audit/actor';
import { recordAudit } from '@latchkey/audit/record';
import { type DeletedApplication, type FollowOptions, followDeletions } from '@latchkey/deletions/follow-deletions';
import { sql } from 'kysely';
import { actionOn } from '../audit/actions.ts';
import type { IdentityContext } from '../context.ts';
import type { Db } from '../db/schema.ts';

type RestrictionContext = Pick<IdentityContext, 'db' | 'clock' | 'logger'>;

/** A key of 1,000 applications has as many index entries, and a statement has 2 s. */
const BATCH_MAX = 50;

export function createDeletionFollower(ctx: RestrictionContext, sources: Pick<FollowOptions, 'redisUrl' | 'appsTransport'>) {
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

async function selectListed(db: Db, applications: readonly DeletedApplication[]): Promise<DeletedApplication[]> {
  const applicationIds = applications.map(({ applicationId }) => applicationId);
  const accountIds = applications.map(({ accountId }) => accountId);
  // `offset 0` makes the planner search by application, which few keys list, and not by account.
  const { rows } = await sql<DeletedApplication>`
    select deleted.application_id as "applicationId", deleted.account_id as "accountId"
    from unnest(${applicationIds}::uuid[], ${accountIds}::uuid[]) as deleted (application_id, account_id)
    where exists (
      select from (select account_id from api_key where application_ids @> array[deleted.application_id] offset 0) as naming
      where naming.account_id = deleted.account_id
    )`.execute(db);
  return rows;
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

/**
 * Keys are locked in one order, and their new list is made from the locked row, so that no
 * concurrent change is lost. Clocks of processes differ, and the time of a change must not go back.
 */
async function removeFromLists(db: Db, { applicationId, accountId }: DeletedApplication, now: Date) {
  const { rows } = await sql<{ id: string; name: string }>`update api_key
    set application_ids = array_remove(application_ids, ${applicationId}::uuid),
      updated_at = greatest(updated_at, ${now}::timestamptz)
    where id = any(array(
      select id from api_key where account_id = ${accountId} and application_ids @> array[${applicationId}::uuid]
      order by id limit ${BATCH_MAX} for update
    ))
    returning id, name`.execute(db);
  return rows;
}
