import { FIRST_ID } from './check.store.ts';
import type { CheckedUsage } from './finding.ts';
import { retried } from './retried.ts';
import { selectUsagePage } from './usage-check.store.ts';
import type { Walk } from './walk.ts';

/** Applications at a time; each has few files, but for one that somebody allowed many. */
const PAGE = 100;

/** Compares what is recorded of each application with its files. */
export async function checkUsage({ db, counts, tell, report }: Walk): Promise<void> {
  for (let after = FIRST_ID; ; ) {
    const page = await retried(() => selectUsagePage(db, after, PAGE));
    for (const usage of page) if (!agrees(usage)) report({ kind: 'usage_wrong', usage });
    counts.applications += page.length;
    tell();
    const last = page.at(-1);
    if (!last || page.length < PAGE) return;
    after = last.applicationId;
  }
}

function agrees({ recorded, actual }: CheckedUsage): boolean {
  return recorded?.fileCount === actual.fileCount && recorded.chargedMib === actual.chargedMib;
}
