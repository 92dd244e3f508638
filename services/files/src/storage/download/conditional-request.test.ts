import { describe, expect, it } from 'vitest';
import { checkPreconditions, parseRange } from './conditional-request.ts';

const MODIFIED = 'Tue, 12 May 2026 09:00:00 GMT';
const BEFORE = 'Tue, 12 May 2026 08:59:59 GMT';
const AFTER = 'Tue, 12 May 2026 09:00:01 GMT';
const validators = { etag: '"abc"', lastModified: new Date('2026-05-12T09:00:00.789Z') };

describe('preconditions', () => {
  it.each([
    ['the tag', { 'if-match': '"abc"' }, undefined],
    ['any tag', { 'if-match': '*' }, undefined],
    ['one of several tags', { 'if-match': '"x", "a,b","abc"' }, undefined],
    ['another tag', { 'if-match': '"x"' }, 412],
    ['a weak tag', { 'if-match': 'W/"abc"' }, 412],
    ['since now', { 'if-unmodified-since': MODIFIED }, undefined],
    ['since earlier', { 'if-unmodified-since': BEFORE }, 412],
    ['since no date', { 'if-unmodified-since': '2020-01-01' }, undefined],
    ['since a date without a year', { 'if-unmodified-since': 'Tue May 12 08:59:59 GMT' }, undefined],
    ['since a date without a zone', { 'if-unmodified-since': 'Tue, 12 May 2026 08:59:59 2026' }, undefined],
    ['since a month in digits', { 'if-unmodified-since': 'Tuesday, 04-011-26 09:00:00 GMT' }, undefined],
    ['the tag and since earlier', { 'if-match': '"abc"', 'if-unmodified-since': BEFORE }, undefined],
    ['not the tag', { 'if-none-match': '"abc"' }, 304],
    ['not any tag', { 'if-none-match': '*' }, 304],
    ['not one of several', { 'if-none-match': '"x", W/"abc"' }, 304],
    ['not another', { 'if-none-match': '"x"' }, undefined],
    ['modified since now', { 'if-modified-since': MODIFIED }, 304],
    ['modified since earlier', { 'if-modified-since': BEFORE }, undefined],
    ['modified since no date', { 'if-modified-since': '2030-01-01' }, undefined],
    ['not another, modified since now', { 'if-none-match': '"x"', 'if-modified-since': MODIFIED }, undefined],
    ['another tag, and not the tag', { 'if-match': '"x"', 'if-none-match': '"abc"' }, 412],
    ['an obsolete date', { 'if-modified-since': 'Tuesday, 12-May-26 09:00:00 GMT' }, 304],
    ['another obsolete date', { 'if-modified-since': 'Tue May 12 09:00:00 2026' }, 304],
  ])('are checked in the order of RFC 9110: %s', (_what, headers, status) => {
    expect(checkPreconditions(headers, validators)).toBe(status);
  });

  it.each([
    [undefined, true],
    ['"abc"', true],
    ['"x"', false],
    ['W/"abc"', false],
    [MODIFIED, true],
    [AFTER, false],
    [BEFORE, false],
  ])('let a range count only for this state: %s', (ifRange, wanted) => {
    const range = parseRange({ range: 'bytes=0-0', 'if-range': ifRange }, validators, 100);
    expect(range !== undefined).toBe(wanted);
  });
});

describe('a Range header', () => {
  const HUGE = '9'.repeat(400);
  const parse = (range: string | undefined) => parseRange({ range }, validators, 100);
  it.each([
    ['bytes=0-0', [0, 0]],
    ['bytes=10-', [10, 99]],
    ['bytes=90-200', [90, 99]],
    [`bytes=1-${HUGE}`, [1, 99]],
    ['bytes=-1', [99, 99]],
    [`bytes=-${HUGE}`, [0, 99]],
    ['Bytes= 10-19 ', [10, 19]],
  ])('asks for the bytes that exist: %s', (header, [start, end]) => {
    expect(parse(header)).toEqual({ start, end });
  });

  it.each(['bytes=100-', 'bytes=-0', `bytes=${HUGE}-`])('can be unsatisfiable: %s', (header) => {
    expect(parse(header)).toBe('unsatisfiable');
  });

  it.each([undefined, '', 'bytes=-', 'bytes=5-2', 'bytes=1-2x', 'bytes=--1', 'bytes=1.5-2', 'bytes=0-1,3-4', 'items=0-1'])(
    'is ignored unless it is a single range of bytes: %s',
    (header) => {
      expect(parse(header)).toBeUndefined();
    },
  );
});
