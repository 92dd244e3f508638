import { within } from '@latchkey/kit/concurrency/within';
import pLimit from 'p-limit';
import type { StorageContext } from '../../context.ts';
import { type SweepKind, sweepFailures, sweepRemoved } from '../../files-metrics.ts';
import { objectKey } from '../object-store/object-store.ts';
import { claimAbandoned, deleteIntent } from '../upload/upload-intent.store.ts';
import { type Claim, claimObjectDeletions, deleteObjectDeletions } from './object-deletion.store.ts';

type Context = Pick<StorageContext, 'db' | 'store' | 'logger'>;
type SweepContext = Context & { readonly limits: { readonly sweepIntervalMs: number } };

const BATCH = 100;
const CONCURRENT_REMOVALS = 8;
/** Short, as the call may have waited for another service before its commit. */
const REMOVAL_MS_MAX = 500;

/** Removes objects whose removal is scheduled. Never rejects: the sweeper takes what is left. */
export async function removeObjects({ db, store, logger }: Context, keys: readonly string[]): Promise<void> {
  if (keys.length === 0) return;
  try {
    await store.remove(...keys);
    await deleteObjectDeletions(db, keys);
  } catch (err) {
    logger.warn({ err, keys }, 'objects are left to the sweeper');
  }
}

/** {@link removeObjects} after a commit, whose caller does not wait long for a slow store. */
export const removeObjectsSoon = (ctx: Context, keys: readonly string[]) => within(REMOVAL_MS_MAX, removeObjects(ctx, keys));

/**
 * Removes what abandoned uploads left, until none is left or the signal aborts. Failed removals are
 * retried by a later sweep. Throws where the database can't be queried.
 */
export function sweepAbandonedUploads(ctx: SweepContext, signal: AbortSignal): Promise<void> {
  return sweep(ctx, 'abandoned_upload', signal, async (claim) => {
    const uploads = await claimAbandoned(ctx.db, claim);
    return uploads.map(({ id, applicationId }) => ({
      key: objectKey(applicationId, id),
      finish: () => deleteIntent(ctx.db, id),
    }));
  });
}

export function sweepObjectDeletions(ctx: SweepContext, signal: AbortSignal): Promise<void> {
  return sweep(ctx, 'deleted_object', signal, async (claim) => {
    const keys = await claimObjectDeletions(ctx.db, claim);
    return keys.map((key) => ({ key, finish: () => deleteObjectDeletions(ctx.db, [key]) }));
  });
}

async function sweep(
  { store, limits, logger }: SweepContext,
  kind: SweepKind,
  signal: AbortSignal,
  claim: (claim: Claim) => Promise<Array<{ readonly key: string; finish(): Promise<void> }>>,
): Promise<void> {
  let [claimed, removed] = [BATCH, BATCH];
  // Without a removal, the claims may already have expired: a later sweep continues.
  while (claimed === BATCH && removed > 0 && !signal.aborted) {
    removed = 0;
    // The claim of a sweeper that is killed lasts for one interval.
    const removals = await claim({ limit: BATCH, claimMs: limits.sweepIntervalMs });
    claimed = removals.length;
    await pLimit(CONCURRENT_REMOVALS).map(removals, async ({ key, finish }) => {
      try {
        await store.remove(key);
        await finish();
        removed += 1;
        sweepRemoved.add(1, kind);
      } catch (err) {
        sweepFailures.add(1, kind);
        logger.warn({ err, key }, 'object not removed, will be retried');
      }
    });
  }
}
