import { expect, it, vi } from 'vitest';
import { parseJsonBody } from './json-body.ts';

const parse = (body: string | readonly number[]) => parseJsonBody(Buffer.from(body as string));
const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;

function expectRejected(body: string | readonly number[]): void {
  const error = expect.objectContaining({ reason: 'request_invalid', httpStatus: 400, code: 'VALIDATION_ERROR' });
  expect(() => parse(body), JSON.stringify(body).slice(0, 50)).toThrow(error);
}

it.each([
  ['an object in white space', ' \t\r\n{"a":[1,true,null,"x"],"b":{"c":"d"}} \n'],
  ['text', '"x"'],
  ['escapes', String.raw`{"a\"b":"c\\","d":"\":","\u0065":"\ud83d\ude00","":1}`],
  ['names that objects inherit', '{"constructor":1,"prototype":2,"toString":3,"hasOwnProperty":4}'],
  ['one name at different levels', '{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}'],
  ['eight levels', nested(8)],
  ['numbers out of range', '[1e-999,9007199254740993]'],
  ['NUL', String.raw`{"a":"\u0000"}`],
])('parses %s', (_, text) => expect(parse(text)).toEqual(JSON.parse(text)));

it('parses an empty body to undefined, and accepts a byte order mark', () => {
  expect(parse('')).toBeUndefined();
  expect(parse([0xef, 0xbb, 0xbf, 0x7b, 0x7d])).toEqual({});
});

it.each<[string, string | readonly number[]]>([
  ...['{', '{"a":1,}', "{'a':1}", 'NaN', '01', '{}{}', '\0', '// x\n{}', ' '].map((text): [string, string] => ['no JSON', text]),
  ['a duplicate property', '{"a":1,"b":2,"a":3}'],
  ['an escaped duplicate', String.raw`{"a":1,"\u0061":2}`],
  ['a duplicate below', '{"x":[{"a":1,"a":2}]}'],
  ['a duplicate after text that looks like a name', String.raw`{"a":"\"b\":","a":1}`],
  ['__proto__', '{"a":{"__proto__":null}}'],
  ['an escaped __proto__', String.raw`{"\u005f_proto__":1}`],
  ['half a surrogate pair in text', String.raw`{"a":{"b":["\ud800\ud800"]}}`],
  ['half a surrogate pair in a name', String.raw`{"\ud83d":1}`],
  ['a lone continuation byte', [0x22, 0x80, 0x22]],
  ['an overlong encoding', [0x22, 0xc0, 0x80, 0x22]],
  ['an encoded surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22]],
  ['UTF-16', [0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]],
  ['nine levels', nested(9)],
  ['nine levels of objects', `${'{"a":'.repeat(9)}1${'}'.repeat(9)}`],
  ['more levels than the stack has', nested(32_768)],
])('rejects %s: %#', (_, body) => expectRejected(body));

it.each<[string, (count: number) => string]>([
  ['objects', (count) => `[${Array(count - 1).fill('{}')}]`],
  ['arrays', (count) => `[${Array(count - 1).fill('[]')}]`],
  ['properties', (count) => `{${Array.from({ length: count - 1 }, (_, index) => `"a${index}":1`)}}`],
])('parses 1,000 %s, and rejects more before they are parsed', (_, make) => {
  expect(parse(make(1_000))).toEqual(JSON.parse(make(1_000)));
  const parseJson = vi.spyOn(JSON, 'parse');
  try {
    for (const count of [1_001, 5_000]) expectRejected(make(count));
    expect(parseJson).not.toHaveBeenCalled();
  } finally {
    parseJson.mockRestore();
  }
});

it('counts no objects, arrays and properties in text', () => {
  const text = ':[{\\":'.repeat(2_000);
  expect(parse(JSON.stringify({ a: text }))).toEqual({ a: text });
});

it('takes a time in proportion to the size', () => {
  const startedAt = performance.now();
  for (const text of [`"${'\\"'.repeat(32_000)}"`, `{"a"${' '.repeat(65_000)}:1}`, `[${'"",'.repeat(20_000)}""]`]) parse(text);
  expectRejected(`"${'\\\\'.repeat(32_000)}`);
  expect(performance.now() - startedAt).toBeLessThan(500);
});
