import type { FilesContext } from '../context.ts';
import { deleteObjectDeletions } from './object-deletion.store.ts';

/** Time that a process has for the objects of rows it deleted before the sweeper takes them. */
export const OWN_REMOVAL_MS = 15_000;

/** Removes objects whose removal is scheduled. Never rejects: the sweeper takes what is left. */
export async function removeObjects(
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
