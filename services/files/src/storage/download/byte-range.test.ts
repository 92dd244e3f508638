import { describe, expect, it } from 'vitest';
import { parseRange } from './byte-range.ts';

const SIZE = 100;

describe('a Range header', () => {
  it.each([
    ['bytes=0-0', 0, 0],
    ['bytes=0-99', 0, 99],
    ['bytes=10-', 10, 99],
    ['bytes=99-', 99, 99],
    ['bytes=90-200', 90, 99],
    [`bytes=1-${'9'.repeat(400)}`, 1, 99],
    ['bytes=-1', 99, 99],
    ['bytes=-100', 0, 99],
    ['bytes=-5000', 0, 99],
    [`bytes=-${'9'.repeat(400)}`, 0, 99],
    ['Bytes=10-19', 10, 19],
    ['bytes= 10-19 ', 10, 19],
  ])('asks for what there is of it: %s', (header, start, end) => {
    expect(parseRange(header, SIZE)).toEqual({ start, end });
  });

  it.each(['bytes=100-', 'bytes=100-200', 'bytes=-0', `bytes=${'9'.repeat(400)}-`])('can ask for nothing: %s', (header) => {
    expect(parseRange(header, SIZE)).toBe('unsatisfiable');
  });

  it.each([
    undefined,
    '',
    'bytes',
    'bytes=',
    'bytes=-',
    'bytes=5-2',
    'bytes=a-b',
    'bytes=1-2x',
    'bytes=--1',
    'bytes=0x1-2',
    'bytes=1.5-2',
    'bytes=0-1,3-4',
    'bytes=0-1, 3-4',
    `bytes=${'0-0,'.repeat(1_000)}1-1`,
    'items=0-1',
    'none',
  ])('is ignored where it is no single range of bytes: %s', (header) => {
    expect(parseRange(header, SIZE)).toBeUndefined();
  });
});
