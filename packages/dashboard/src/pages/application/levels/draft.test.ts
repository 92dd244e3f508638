import { expect, it } from 'vitest';
import { findProblems } from './draft.ts';

it('counts the characters of a level as the service does', () => {
  expect(findProblems(['😀'.repeat(16), 'x'.repeat(16)])).toEqual([undefined, undefined]);
  expect(findProblems(['😀'.repeat(17), 'x'.repeat(17)]).filter(Boolean)).toHaveLength(2);
});
