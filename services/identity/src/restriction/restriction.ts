import { BY_ITSELF } from '@latchkey/audit/actor';
import { type AuditEvent, recordAudit } from '@latchkey/audit/record';
import type { IdentityContext } from '../context.ts';
import { type DeletedApplication, removeFromLists, type ShortenedKey } from './restriction.store.ts';

export type { DeletedApplication } from './restriction.store.ts';

/** What clearing restrictions works on. */
export type RestrictionContext = Pick<IdentityContext, 'db' | 'clock' | 'logger'>;

/** Most keys that one statement changes. A key of 1,000 applications is 1,000 entries of an index, and the statement has 2 s. */
const BATCH_MAX = 50;

/**
 * Takes a deleted application out of the restrictions of its account's keys, revoked ones as well. A key whose last application it was stays
 * restricted, to nothing. `updatedAt` moves with the list, as it does with every change that the record shows: who keeps a copy goes by it. Done again, or
 * by several at once, it is done once.
 *
 * No epoch ends, though principals that gateways remember still name the application for some seconds: that opens nothing to them. Its id is never
 * given again, and the apps service answers for it as for one that never was, before any restriction counts.
 *
 * @param signal ends it after the batch it is at
 */
export async function removeFromRestrictions(
  ctx: RestrictionContext,
  application: DeletedApplication,
  signal?: AbortSignal,
): Promise<void> {
  let keyCount = 0;
  while (!signal?.aborted) {
    const changed = await removeSome(ctx, application);
    // Not when it is less than a batch: others may be removing as well.
    if (changed === 0) break;
    keyCount += changed;
  }
  const { applicationId } = application;
  if (keyCount > 0) ctx.logger.info({ applicationId, keyCount }, 'deleted application removed from restrictions of keys');
}

/** Removes it from some lists, and answers of how many keys. */
async function removeSome({ db, clock }: RestrictionContext, application: DeletedApplication): Promise<number> {
  return db.transaction().execute(async (tx) => {
    const changed = await removeFromLists(tx, application, { limit: BATCH_MAX, at: clock() });
    await recordAudit(tx, BY_ITSELF, ...changed.map((key) => toEvent(application, key)));
    return changed.length;
  });
}

function toEvent({ accountId, applicationId }: DeletedApplication, { id, name }: ShortenedKey): AuditEvent {
  const subject = { kind: 'api_key', id } as const;
  return { accountId, action: 'api_key.application_removed', subject, applicationId, changes: { applicationId, name } };
}
