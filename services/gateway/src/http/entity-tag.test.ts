import { expect, it } from 'vitest';
import { namesEntity } from './entity-tag.ts';

it.each([
  ['"a"', true],
  ['W/"a"', true],
  ['"b", "a"', true],
  ['"b","a"', true],
  ['*', true],
  [' * ', true],
  ['"b"', false],
  ['a', false],
  ['"aa"', false],
  ['', false],
  ['"', false],
  ['"b*"', false],
])('%s names "a": %s', (field, expected) => {
  expect(namesEntity(field, '"a"')).toBe(expected);
});
