import type { FilesContext } from '../context.ts';
import { deleteObjectDeletions } from '../storage/object-deletion.store.ts';

/** Removes objects that are noted for removal, as far as the store does it now: the others are the sweeper's. Never rejects. */
export async function removeNoted(
  { db, store, logger }: Pick<FilesContext, 'db' | 'store' | 'logger'>,
  keys: readonly string[],
): Promise<void> {
  if (keys.length === 0) return;
  try {
    await store.remove(...keys);
    await deleteObjectDeletions(db, keys);
  } catch (err) {
    logger.warn({ err, keys }, 'objects are left to the sweeper');
  }
}
