import { within } from '@latchkey/kit/concurrency/within';
import pLimit from 'p-limit';
import type { StorageContext } from '../../context.ts';
import { sweepFailures, sweepRemoved } from '../../files-metrics.ts';
import { claimObjectDeletions, deleteObjectDeletions } from './object-deletion.store.ts';

type Context = Pick<StorageContext, 'db' | 'store' | 'logger'>;
type SweepContext = Context & { readonly limits: { readonly sweepIntervalMs: number } };

const KEYS_PER_REMOVAL = 64;
const CONCURRENT_REMOVALS = 8;
export const BATCH = KEYS_PER_REMOVAL * CONCURRENT_REMOVALS;
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
 * Removes the objects whose removal is due, until none is left or the signal aborts. A later sweep
 * retries failed removals. Throws where the database can't be queried.
 */
export async function sweepObjectDeletions({ db, store, limits, logger }: SweepContext, signal: AbortSignal): Promise<void> {
  let removed = 0;
  const remove = async (keys: readonly string[]): Promise<void> => {
    try {
      await store.remove(...keys);
      await deleteObjectDeletions(db, keys);
      removed += keys.length;
      sweepRemoved.add(keys.length, 'deleted_object');
    } catch (err) {
      // One that fails must not block the others: each alone.
      if (keys.length > 1) for (const key of keys) await remove([key]);
      else {
        sweepFailures.add(1, 'deleted_object');
        logger.warn({ err, key: keys[0] }, 'object not removed, will be retried');
      }
    }
  };
  const limit = pLimit(CONCURRENT_REMOVALS);
  for (let claimed = BATCH; claimed === BATCH && !signal.aborted; ) {
    removed = 0;
    // The claim of a sweeper that was killed expires after one interval.
    const keys = await claimObjectDeletions(db, { limit: BATCH, claimMs: limits.sweepIntervalMs });
    const groups = Math.ceil(keys.length / KEYS_PER_REMOVAL);
    await limit.map([...Array(groups).keys()], (i) => remove(keys.slice(i * KEYS_PER_REMOVAL, (i + 1) * KEYS_PER_REMOVAL)));
    // Without a removal, the claims may already have expired: a later sweep continues.
    claimed = removed > 0 ? keys.length : 0;
  }
}
