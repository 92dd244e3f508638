import type { FilesContext } from '../../context.ts';
import type { StoredObject } from '../object-store/object-store.ts';
import { selectUnknownKeys } from './reconciler.store.ts';

const BATCH = 1_000;
/** Unfinished uploads to look up a second time; the next run finds the others. */
const UNFINISHED_MAX = 100_000;
/** Keys in a log line. */
const EXAMPLES_MAX = 10;

type Context = Pick<FilesContext, 'db' | 'store'>;

/**
 * Objects, and rests of unfinished uploads, that no row knows. Each row is queried after the
 * listing and each object looked up again after that, so uploads and deletions under way are not
 * among them.
 *
 * @param onObject called for each object of the store
 */
export async function* findUnknownObjects(ctx: Context, onObject = () => {}): AsyncGenerator<StoredObject> {
  const unfinished = new Set<string>();
  for await (const batch of inBatches(ctx.store.list())) {
    const unknown = await selectUnknownKeys(
      ctx.db,
      batch.map(({ key }) => key),
    );
    for (const object of batch) {
      if (!object.unfinished) onObject();
      if (!unknown.has(object.key)) continue;
      if (!object.unfinished && (await ctx.store.stat(object.key))) yield object;
      if (object.unfinished && unfinished.size < UNFINISHED_MAX) unfinished.add(object.key);
    }
  }
  if (unfinished.size === 0) return;
  // A store can't look up unfinished uploads one by one.
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

/** Logs objects without a row (architecture 4). They stay, as the settings may be wrong. */
export async function reportUnknownObjects(ctx: Context & Pick<FilesContext, 'logger'>, signal: AbortSignal): Promise<void> {
  let count = 0;
  const examples: string[] = [];
  for await (const { key } of findUnknownObjects(ctx)) {
    if (signal.aborted) return;
    count += 1;
    if (examples.length < EXAMPLES_MAX) examples.push(key);
  }
  if (count > 0)
    ctx.logger.warn({ count, examples }, 'the object store has objects without a row; check-files --mend removes them');
}
