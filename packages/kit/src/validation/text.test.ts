import { expect, it } from 'vitest';
import { formatCount } from './text.ts';

it('separates the thousands of a number', () => {
  expect([0, 999, 1_000, 65_536, 1_000_000].map(formatCount)).toEqual(['0', '999', '1,000', '65,536', '1,000,000']);
});
