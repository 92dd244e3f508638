import type { StoredObject } from '../object-store/object-store.ts';
import { selectUnknownKeys } from './check.store.ts';
import { retried } from './retried.ts';
import type { Walk } from './walk.ts';

const BATCH = 1_000;

/** Most unfinished uploads that nobody knows to look at a second time; a further run finds the others. */
const UNFINISHED_MAX = 100_000;

/** Asks for every object who knows it, after it was listed. */
export async function checkObjects(walk: Walk): Promise<void> {
  const unfinished = new Set<string>();
  let batch: StoredObject[] = [];
  for await (const object of walk.store.list()) {
    batch.push(object);
    if (batch.length < BATCH) continue;
    await checkBatch(walk, batch, unfinished);
    batch = [];
  }
  await checkBatch(walk, batch, unfinished);
  if (unfinished.size > 0) await reportUnfinished(walk, unfinished);
}

async function checkBatch(
  { db, store, counts, tell, report }: Walk,
  batch: StoredObject[],
  unfinished: Set<string>,
): Promise<void> {
  const keys = batch.map((object) => object.key);
  const unknown = await retried(() => selectUnknownKeys(db, keys));
  for (const object of batch) {
    if (!object.unfinished) counts.objects += 1;
    if (!unknown.has(object.key)) continue;
    if (object.unfinished) {
      if (unfinished.size < UNFINISHED_MAX) unfinished.add(object.key);
    } else if (await store.stat(object.key)) {
      // Otherwise it was removed since it was listed, and forgotten after that.
      report({ kind: 'object_orphaned', object });
    }
  }
  tell();
}

/** Reports those that are still there: an upload that ended meanwhile has removed its own. They can't be asked for one by one. */
async function reportUnfinished({ store, report }: Walk, keys: Set<string>): Promise<void> {
  for await (const object of store.list()) {
    if (object.unfinished && keys.delete(object.key)) report({ kind: 'upload_unfinished', object });
  }
}
