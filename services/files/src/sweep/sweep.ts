import type { FilesContext } from '../context.ts';
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
    const uploads = await claimAbandoned(ctx.db, BATCH);
    await eachRemoved(
      ctx,
      uploads,
      ({ id, applicationId }) => objectKey(applicationId, id),
      ({ id }) => deleteIntent(ctx.db, id),
    );
    return uploads.length;
  });
}

/** Removes the objects of files that are gone, likewise. */
export async function sweepObjectDeletions(ctx: FilesContext, signal: AbortSignal): Promise<void> {
  await untilEmpty(signal, async () => {
    const keys = await claimObjectDeletions(ctx.db, BATCH);
    await eachRemoved(
      ctx,
      keys,
      (key) => key,
      (key) => deleteObjectDeletions(ctx.db, [key]),
    );
    return keys.length;
  });
}

async function untilEmpty(signal: AbortSignal, sweep: () => Promise<number>): Promise<void> {
  while (!signal.aborted) if ((await sweep()) < BATCH) return;
}

/** Removes the object of each item, some at once, then does what is due after that. One that fails does not hinder the others. */
async function eachRemoved<T>(
  ctx: FilesContext,
  items: readonly T[],
  keyOf: (item: T) => string,
  after: (item: T) => Promise<void>,
): Promise<void> {
  const waiting = [...items];
  const work = async () => {
    for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) {
      const key = keyOf(item);
      try {
        await ctx.store.remove(key);
        await after(item);
      } catch (err) {
        ctx.logger.warn({ err, key }, 'object not removed, to be tried again');
      }
    }
  };
  await Promise.all(Array.from({ length: REMOVALS_AT_ONCE }, work));
}
