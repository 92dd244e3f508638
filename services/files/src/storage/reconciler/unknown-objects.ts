import type { StorageContext } from '../../context.ts';
import type { StoredObject } from '../object-store/object-store.ts';
import { selectUnknownKeys } from './reconciler.store.ts';

const BATCH = 1_000;
/** Unfinished uploads to confirm in a second listing; the next run finds the others. */
const UNFINISHED_MAX = 100_000;
const EXAMPLES_MAX = 10;

/**
 * Objects and unfinished uploads without a row. Rows are queried after the listing, and each object
 * is confirmed after that, so uploads and deletions under way are not among them.
 */
export async function* findUnknownObjects(
  ctx: Pick<StorageContext, 'db' | 'store'>,
  counts = { objects: 0 },
): AsyncGenerator<StoredObject> {
  const unfinished = new Set<string>();
  for await (const batch of inBatches(ctx.store.list())) {
    const keys = batch.map(({ key }) => key);
    const unknown = await selectUnknownKeys(ctx.db, keys);
    for (const object of batch) {
      if (!object.unfinished) counts.objects += 1;
      if (!unknown.has(object.key)) continue;
      if (!object.unfinished && (await ctx.store.stat(object.key))) yield object;
      if (object.unfinished && unfinished.size < UNFINISHED_MAX) unfinished.add(object.key);
    }
  }
  if (unfinished.size === 0) return;
  // A store can only list unfinished uploads.
  for await (const object of ctx.store.list()) if (object.unfinished && unfinished.delete(object.key)) yield object;
}

async function* inBatches(objects: AsyncIterable<StoredObject>): AsyncGenerator<StoredObject[]> {
  let batch: StoredObject[] = [];
  for await (const object of objects) {
    if (batch.push(object) < BATCH) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/** Logs objects without a row. They stay, as the settings may be wrong. */
export async function reportUnknownObjects(ctx: StorageContext, signal: AbortSignal): Promise<void> {
  let count = 0;
  const examples: string[] = [];
  for await (const { key } of findUnknownObjects(ctx)) {
    if (signal.aborted) return;
    count += 1;
    if (examples.length < EXAMPLES_MAX) examples.push(key);
  }
  if (count > 0)
    ctx.logger.warn({ count, examples }, 'the object store has objects without a row; check-files --repair removes them');
}
