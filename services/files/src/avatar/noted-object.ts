import type { FilesContext } from '../context.ts';
import { deleteObjectDeletions } from '../sweep/sweep.store.ts';

/** Removes objects that are noted for removal, as far as the store does it now: the others are the sweeper's. Never rejects. */
export async function removeNoted(
  { db, store, logger }: Pick<FilesContext, 'db' | 'store' | 'logger'>,
  keys: readonly string[],
): Promise<void> {
  for (const key of keys) {
    try {
      await store.remove(key);
      await deleteObjectDeletions(db, [key]);
    } catch (err) {
      logger.warn({ err, key }, 'object is left to the sweeper');
    }
  }
}
