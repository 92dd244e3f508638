import { expect, it } from 'vitest';
import { findProblems, toDraft } from './draft.ts';

it('counts the characters of a level as the service does', () => {
  expect(findProblems(toDraft(['😀'.repeat(16), 'x'.repeat(16)]))).toEqual(new Map());
  expect(findProblems(toDraft(['😀'.repeat(17), 'x'.repeat(17)])).size).toBe(2);
});
