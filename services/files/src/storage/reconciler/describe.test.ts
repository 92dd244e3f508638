import { expect, it } from 'vitest';
import { describeSummary } from './describe.ts';
import type { FindingKind } from './finding.ts';

it('the last words of a check name what was found in the same order, whichever was found first', () => {
  const found: Array<[FindingKind, number]> = [
    ['usage_wrong', 1],
    ['upload_unfinished', 1],
    ['object_damaged', 2],
    ['object_missing', 1],
  ];
  const counts = { files: 3, filesExpected: 3, avatars: 0, bytesRead: 7, objects: 3, applications: 1, findings: 5, mended: 0 };
  const summary = { counts, byKind: new Map(found), left: 5, refusal: undefined };
  expect(describeSummary(summary, { mend: false, command: 'check', seconds: 1 })).toContain(
    '\nFound 5 problems: 1 missing object, 2 damaged objects, 1 unfinished upload, 1 wrong usage.\n',
  );
});
