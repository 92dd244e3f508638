import type { FilesContext } from '../../context.ts';
import { type SweepKind, sweepFailures, sweepRemoved } from '../../files-metrics.ts';
import { objectKey } from '../object-store/object-store.ts';
import { deleteIntent } from '../upload/upload-intent.store.ts';
import { claimAbandoned, claimObjectDeletions, deleteObjectDeletions } from './sweep.store.ts';

/** Most that is taken at once. */
const BATCH = 100;

/** Most removals that run at once. */
const REMOVALS_AT_ONCE = 8;

/**
 * Removes what abandoned uploads left, until none is left or the signal aborts. What can't be removed now is tried again by a later sweep.
 *
 * @throws where the database can't be asked
 */
export async function sweepAbandonedUploads(ctx: FilesContext, signal: AbortSignal): Promise<void> {
  await untilEmpty(signal, async () => {
    const uploads = await claimAbandoned(ctx.db, claimOf(ctx));
    const removed = await eachRemoved(
      ctx,
      { kind: 'abandoned_upload', items: uploads },
      ({ id, applicationId }) => objectKey(applicationId, id),
      ({ id }) => deleteIntent(ctx.db, id),
    );
    return { taken: uploads.length, removed };
  });
}

/** Removes the objects of files that are gone, likewise. */
export async function sweepObjectDeletions(ctx: FilesContext, signal: AbortSignal): Promise<void> {
  await untilEmpty(signal, async () => {
    const keys = await claimObjectDeletions(ctx.db, claimOf(ctx));
    const removed = await eachRemoved(
      ctx,
      { kind: 'deleted_object', items: keys },
      (key) => key,
      (key) => deleteObjectDeletions(ctx.db, [key]),
    );
    return { taken: keys.length, removed };
  });
}

/** What a sweeper that was killed had in hand waits for a period, as anything else does. */
function claimOf({ limits }: FilesContext) {
  return { limit: BATCH, claimMs: limits.sweepIntervalMs };
}

/** While nothing can be removed there is no sense in going on, as what was taken may already be due again. */
async function untilEmpty(signal: AbortSignal, sweep: () => Promise<{ taken: number; removed: number }>): Promise<void> {
  while (!signal.aborted) {
    const { taken, removed } = await sweep();
    if (taken < BATCH || removed === 0) return;
  }
}

/**
 * Removes the object of each item, some at once, then does what is due after that. One that fails does not hinder the others.
 *
 * @returns how many did not fail
 */
async function eachRemoved<T>(
  ctx: FilesContext,
  { kind, items }: { readonly kind: SweepKind; readonly items: readonly T[] },
  keyOf: (item: T) => string,
  after: (item: T) => Promise<void>,
): Promise<number> {
  let removed = 0;
  const waiting = [...items];
  const work = async () => {
    for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) {
      const key = keyOf(item);
      try {
        await ctx.store.remove(key);
        await after(item);
        removed += 1;
        sweepRemoved.add(1, kind);
      } catch (err) {
        sweepFailures.add(1, kind);
        ctx.logger.warn({ err, key }, 'object not removed, to be tried again');
      }
    }
  };
  await Promise.all(Array.from({ length: REMOVALS_AT_ONCE }, work));
  return removed;
}
