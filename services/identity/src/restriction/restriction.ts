import { SERVICE_ORIGIN } from '@latchkey/audit/actor';
import { type AuditEvent, recordAudit } from '@latchkey/audit/record';
import type { IdentityContext } from '../context.ts';
import { type DeletedApplication, removeFromLists } from './restriction.store.ts';

export type { DeletedApplication } from './restriction.store.ts';

export type RestrictionContext = Pick<IdentityContext, 'db' | 'clock' | 'logger'>;

/** A key of 1,000 applications has as many index entries, and a statement has 2 s. */
const BATCH_MAX = 50;

/**
 * Removes a deleted application from the restrictions of its account's keys, revoked ones too. A
 * key whose last application it was stays restricted, to nothing. It may be repeated and run
 * concurrently.
 * No epoch ends: cached principals that still name the application open nothing, as its id is
 * never reused and the apps service answers for it before any restriction counts.
 */
export async function removeFromRestrictions(
  ctx: RestrictionContext,
  application: DeletedApplication,
  signal?: AbortSignal,
): Promise<void> {
  const { applicationId, accountId } = application;
  const toEvent = ({ id, name }: { id: string; name: string }): AuditEvent => {
    const subject = { kind: 'api_key', id } as const;
    return { accountId, action: 'api_key.application_removed', subject, applicationId, changes: { applicationId, name } };
  };
  let keyCount = 0;
  while (!signal?.aborted) {
    const changed = await ctx.db.transaction().execute(async (tx) => {
      const keys = await removeFromLists(tx, application, BATCH_MAX, ctx.clock());
      await recordAudit(tx, SERVICE_ORIGIN, ...keys.map(toEvent));
      return keys.length;
    });
    // A partial batch may only mean that another process removes too.
    if (changed === 0) break;
    keyCount += changed;
  }
  if (keyCount > 0) ctx.logger.info({ applicationId, keyCount }, 'deleted application removed from restrictions of keys');
}
