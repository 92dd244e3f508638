import { selectFileCount } from './check.store.ts';
import { checkAvatars } from './check-avatars.ts';
import { checkObjects } from './check-objects.ts';
import { checkRows } from './check-rows.ts';
import { checkUsage } from './check-usage.ts';
import type { CheckCounts, CheckObserver, Finding, FindingKind } from './finding.ts';
import { mendFinding } from './mend.ts';
import type { CheckContext } from './walk.ts';

/** What a check is to do. */
export interface CheckOptions {
  /** Mend what was found, once everything has been looked at. */
  readonly mend: boolean;
  /** Compare sizes only, so that no object is read. */
  readonly skipChecksums: boolean;
  /** Mend also where so much is wrong that the settings are more likely to be. */
  readonly force: boolean;
}

/** How a check went. */
export interface CheckSummary {
  readonly counts: Readonly<CheckCounts>;
  readonly byKind: ReadonlyMap<FindingKind, number>;
  /** Findings that still hold. */
  readonly left: number;
  /** Why nothing was mended: most files have no intact object, or most objects no file. */
  readonly refusal: 'files' | 'objects' | undefined;
}

/** Findings that one run can mend; each is kept until everything was looked at. */
const MENDABLE_MAX = 100_000;

/** Fewer lost files, or unknown objects, than this are never a reason not to mend. */
const DOUBTFUL_MIN = 10;

/**
 * Compares files, objects and the recorded usage with one another, and mends what disagrees where that is asked for. Safe while uploads, deletions
 * and other checks run: nothing is reported, and nothing mended, that does not still hold when asked again after the look at the store.
 *
 * @throws where the database or the store can't be used
 */
export async function checkFiles(ctx: CheckContext, options: CheckOptions, observer: CheckObserver): Promise<CheckSummary> {
  const counts = { files: 0, filesExpected: 0, avatars: 0, bytesRead: 0, objects: 0, applications: 0, findings: 0, mended: 0 };
  const byKind = new Map<FindingKind, number>();
  const mendable: Finding[] = [];
  const tell = () => observer.onProgress(counts);
  const report = (finding: Finding) => {
    counts.findings += 1;
    byKind.set(finding.kind, (byKind.get(finding.kind) ?? 0) + 1);
    if (options.mend && mendable.length < MENDABLE_MAX) mendable.push(finding);
    observer.onFinding(finding);
    tell();
  };
  // Not tried again, so that wrong settings are told at once.
  counts.filesExpected = await selectFileCount(ctx.db);
  const walk = { ...ctx, skipChecksums: options.skipChecksums, counts, tell, report };
  await checkRows(walk);
  await checkAvatars(walk);
  await checkObjects(walk);
  await checkUsage(walk);
  const refusal = options.mend && !options.force ? doubt(counts, byKind) : undefined;
  let left = counts.findings;
  if (refusal === undefined) {
    // The usage first: taking a file out of a wrong one may fail.
    const isUsage = ({ kind }: Finding) => kind === 'usage_wrong';
    for (const finding of mendable.toSorted((a, b) => Number(isUsage(b)) - Number(isUsage(a)))) {
      const { outcome, err } = await mendFinding(ctx, finding, options.skipChecksums);
      if (outcome !== 'failed') left -= 1;
      if (outcome === 'mended') counts.mended += 1;
      observer.onMended(finding, outcome, err);
      tell();
    }
  }
  return { counts, byKind, left, refusal };
}

/** Another folder, bucket or database than the right one looks like the loss of everything; to mend that would be the loss. */
function doubt(counts: CheckCounts, byKind: ReadonlyMap<FindingKind, number>): CheckSummary['refusal'] {
  const of = (kind: FindingKind) => byKind.get(kind) ?? 0;
  // Also of a single file: there is nothing in the store that speaks for its being the right one.
  if (counts.files + counts.avatars > 0 && counts.objects === 0) return 'files';
  const isMost = (count: number, all: number) => count > DOUBTFUL_MIN && count * 2 > all;
  const lost = of('object_missing') + of('object_damaged') + of('avatar_lost');
  if (isMost(lost, counts.files + counts.avatars)) return 'files';
  return isMost(of('object_orphaned'), counts.objects) ? 'objects' : undefined;
}
