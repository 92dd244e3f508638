import { expect, it } from 'vitest';
import { formatPart, formatTable, printable, shorten, toJson } from './text.ts';

it('aligns columns by what a terminal shows, and shortens the widest one to fit it', () => {
  const rows = [
    ['専門家', 'a'],
    ['a name that is far too long', 'b'],
  ];
  expect(formatTable(rows, { headings: ['NAME', 'ID'], columns: 20 })).toBe(
    'NAME              ID\n専門家            a\na name t…oo long  b\n',
  );
});

it('escapes what a terminal would interpret', () => {
  expect(printable('a\u001b[2Jb\u009b\r\u202e')).toBe('a\\u001b[2Jb\\u009b\\u000d\\u202e');
  expect(formatTable([['a\nb']], {})).toBe('a\\u000ab\n');
});

it('writes JSON without a character that a terminal would interpret', () => {
  const value = { 'a\u009b': ['\u202e\u0085\u007f\u061c\u2069', 'b\n\u001b'] };
  expect(toJson(value)).toBe(String.raw`{"a\u009b":["\u202e\u0085\u007f\u061c\u2069","b\n\u001b"]}`);
  expect(JSON.parse(toJson(value, 2))).toEqual(value);
  expect(toJson(value, 2)).toMatch(/^\{\n {2}"a/);
});

it.each([
  ['engine-linux.zip', 16, 'engine-linux.zip'],
  ['engine-linux.zip', 10, 'engin….zip'],
  ['専門家専門家', 7, '専…家'],
])('shortens %s to %i columns', (text, width, shortened) => {
  expect(shorten(text, width)).toBe(shortened);
});

it('reports a part in the unit of the whole', () => {
  expect(formatPart(1_024, 54_211_379)).toBe('0.0 of 51.7 MiB');
  expect(formatPart(512, 1_536)).toBe('0.5 of 1.5 KiB');
});
