import { expect, it } from 'vitest';
import { readFlag, readPage, readReturnTo, readText } from './search.ts';

const OTHER_TYPES: readonly unknown[] = [undefined, null, 0, 7, true, ['/account'], { a: 1 }, { toString: () => '/account' }];

it.each([
  '',
  'account',
  'https://evil.test/',
  'HTTPS:evil.test',
  '//evil.test',
  '///evil.test',
  '/\\evil.test',
  '\\\\evil.test',
  '/\t/evil.test',
  '/\n/evil.test',
  '\t//evil.test',
  ' //evil.test',
  '/..//evil.test',
  '/.//evil.test',
  '/account/..//evil.test',
  '/account//evil.test',
  '/%2e%2e//evil.test',
  '/%2F/evil.test',
  '/account\u0000',
  '/account\n',
  '/account?\n',
  '/a@evil.test',
  'javascript:alert(1)',
  'data:text/html,x',
  ...OTHER_TYPES,
])('does not return to %j', (value) => {
  expect(readReturnTo(value)).toBeUndefined();
});

it.each([
  '/account',
  '/applications/019aa5b4-5a0c-7000-8000-000000000001/files?page=2&search=%C3%A4+b%2Fc',
  '/api-keys?create=true#end',
  '/applications/',
])('returns to the page %s', (path) => {
  expect(readReturnTo(path)).toBe(path);
});

it('accepts values of the type of the parameter only', () => {
  expect(['', ...OTHER_TYPES].map(readText)).toEqual([undefined, ...OTHER_TYPES.map(() => undefined)]);
  expect(['true', 1, {}, [], false].map(readFlag)).toEqual(Array(5).fill(undefined));
  expect(['2', 1, -2, 2.5, 2 ** 53, Number.NaN, [2], null].map(readPage)).toEqual(Array(8).fill(undefined));
  expect([readText('a'), readFlag(true), readPage(2)]).toEqual(['a', true, 2]);
});
