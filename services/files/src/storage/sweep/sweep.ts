import type { FilesContext } from '../../context.ts';
import { type SweepKind, sweepFailures, sweepRemoved } from '../../files-metrics.ts';
import { claimObjectDeletions, deleteObjectDeletions } from '../object-deletion.store.ts';
import { objectKey } from '../object-store/object-store.ts';
import { claimAbandoned, deleteIntent } from '../upload/upload-intent.store.ts';

/** Rows claimed by one statement. */
const BATCH = 100;
const CONCURRENT_REMOVALS = 8;

/** An object to remove, and what to do once it is removed. */
interface Removal {
  readonly key: string;
  finish(): Promise<void>;
}

/**
 * Removes what abandoned uploads left, until none is left or the signal aborts. Failed removals are
 * retried by a later sweep.
 *
 * @throws where the database can't be queried
 */
export function sweepAbandonedUploads(ctx: FilesContext, signal: AbortSignal): Promise<void> {
  return sweep(ctx, 'abandoned_upload', signal, async (claim) => {
    const uploads = await claimAbandoned(ctx.db, claim);
    return uploads.map(({ id, applicationId }) => ({
      key: objectKey(applicationId, id),
      finish: () => deleteIntent(ctx.db, id),
    }));
  });
}

/** Removes the objects of deleted files, likewise. */
export function sweepObjectDeletions(ctx: FilesContext, signal: AbortSignal): Promise<void> {
  return sweep(ctx, 'deleted_object', signal, async (claim) => {
    const keys = await claimObjectDeletions(ctx.db, claim);
    return keys.map((key) => ({ key, finish: () => deleteObjectDeletions(ctx.db, [key]) }));
  });
}

async function sweep(
  ctx: FilesContext,
  kind: SweepKind,
  signal: AbortSignal,
  claim: (claim: { limit: number; claimMs: number }) => Promise<Removal[]>,
): Promise<void> {
  let removed = BATCH;
  // Where nothing can be removed, what was claimed may already be due again: the next sweep
  // continues.
  for (let claimed = BATCH; claimed === BATCH && removed > 0 && !signal.aborted; ) {
    removed = 0;
    // The claim of a sweeper that is killed lasts for one period.
    const removals = await claim({ limit: BATCH, claimMs: ctx.limits.sweepIntervalMs });
    claimed = removals.length;
    const waiting = removals.values();
    const work = async () => {
      for (const { key, finish } of waiting) {
        try {
          await ctx.store.remove(key);
          await finish();
          removed += 1;
          sweepRemoved.add(1, kind);
        } catch (err) {
          sweepFailures.add(1, kind);
          ctx.logger.warn({ err, key }, 'object not removed, will be retried');
        }
      }
    };
    await Promise.all(Array.from({ length: CONCURRENT_REMOVALS }, work));
  }
}
