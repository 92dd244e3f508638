import { FIRST_ID, isUnchanged, selectFilePage } from './check.store.ts';
import { eachAtOnce } from './each-at-once.ts';
import type { CheckedFile } from './finding.ts';
import { inspectObject } from './inspect-object.ts';
import { retried } from './retried.ts';
import type { Walk } from './walk.ts';

const PAGE = 1_000;

/** Most objects that are looked at at once, so that the system has most of its disk and its network to itself. */
const LOOKS_AT_ONCE = 4;

/** Looks at the object of every file. */
export async function checkRows(walk: Walk): Promise<void> {
  for (let after = FIRST_ID; ; ) {
    const page = await retried(() => selectFilePage(walk.db, after, PAGE));
    await eachAtOnce(page, LOOKS_AT_ONCE, (file) => checkFile(walk, file));
    const last = page.at(-1);
    if (!last || page.length < PAGE) return;
    after = last.id;
  }
}

async function checkFile({ db, store, skipChecksums, counts, tell, report }: Walk, file: CheckedFile): Promise<void> {
  const onBytes = (count: number) => {
    counts.bytesRead += count;
    tell();
  };
  const finding = await inspectObject(store, file, { skipChecksums, onBytes });
  // The row of a file goes before its object does.
  if (finding && (await retried(() => isUnchanged(db, file)))) report(finding);
  counts.files += 1;
  tell();
}
