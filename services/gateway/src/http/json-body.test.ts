import { describe, expect, it } from 'vitest';
import { parseJsonBody } from './json-body.ts';

const parse = (body: string | readonly number[]) => parseJsonBody(Buffer.from(body as string));
const REFUSED = expect.objectContaining({ reason: 'request_invalid', httpStatus: 400, code: 'VALIDATION_ERROR' });

function refused(body: string | readonly number[]): void {
  let thrown: unknown;
  try {
    parse(body);
  } catch (err) {
    thrown = err;
  }
  expect(thrown, JSON.stringify(body)).toEqual(REFUSED);
}

describe('a JSON body', () => {
  it('is undefined when there is none, which a schema may then refuse', () => {
    expect(parse('')).toBeUndefined();
  });

  it.each([
    ['an object', '{"a":[1,true,null,"x"],"b":{"c":"d"}}'],
    ['white space around everything', ' \t\r\n{ "a" : 1 , "b" : [ ] } \n'],
    ['an array', '[1]'],
    ['text', '"x"'],
    ['null', 'null'],
    ['escapes', String.raw`{"a\"b":"c\\","d":"\":","\u0065":"\ud83d\ude00"}`],
    ['an empty name', '{"":1}'],
    ['a colon in text', '{"a":"b:c","d":"\\":\\""}'],
    ['names that objects inherit', '{"constructor":1,"prototype":2,"toString":3,"hasOwnProperty":4}'],
    ['one name at different levels', '{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}'],
  ])('is read like any other: %s', (_what, text) => {
    expect(parse(text)).toEqual(JSON.parse(text));
  });

  it('may begin with a byte order mark, which RFC 8259 lets a parser ignore', () => {
    expect(parse([0xef, 0xbb, 0xbf, 0x7b, 0x7d])).toEqual({});
  });

  it.each(['{', '}', '{"a":1', '{"a":1,}', "{'a':1}", '{a:1}', 'NaN', 'undefined', '01', '1.', '{}{}', '\0', '// x\n{}', ' '])(
    'is refused when it is no JSON: %j',
    refused,
  );

  it.each([
    ['a property given twice', '{"a":1,"a":1}'],
    ['twice, with another value', '{"a":1,"b":2,"a":3}'],
    ['twice, once escaped', String.raw`{"a":1,"\u0061":2}`],
    ['twice, below', '{"x":[{"a":1,"a":2}]}'],
    ['three times', '{"a":1,"a":1,"a":1}'],
    ['twice with a text that looks like a name between them', String.raw`{"a":"\"b\":","a":1}`],
  ])('is refused with %s', (_what, text) => refused(text));

  it.each(['{"__proto__":1}', '{"__proto__":{"x":1}}', '{"a":{"__proto__":null}}', String.raw`{"\u005f_proto__":1}`])(
    'is refused with a property that would be taken for the prototype: %s',
    refused,
  );

  it.each([
    String.raw`"\ud800"`,
    String.raw`{"a":"\udc00"}`,
    String.raw`{"\ud83d":1}`,
    String.raw`["x\ude00\ud83d"]`,
    String.raw`{"a":{"b":["\ud800\ud800"]}}`,
  ])('is refused with half a surrogate pair: %s', refused);

  it.each([
    ['a lone continuation byte', [0x22, 0x80, 0x22]],
    ['an overlong encoding', [0x22, 0xc0, 0x80, 0x22]],
    ['an encoded surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ['a cut sequence', [0x22, 0xf0, 0x9f, 0x98, 0x22]],
    ['a code point past the last', [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22]],
    ['UTF-16', [0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]],
    ['Latin-1', [0x22, 0xe9, 0x22]],
  ])('is refused with bytes that are no UTF-8: %s', (_what, bytes) => refused(bytes));

  it('keeps NUL for the schema to refuse', () => {
    expect(parse(String.raw`{"a":"\u0000"}`)).toEqual({ a: '\0' });
  });

  it('is read down to eight levels and refused below', () => {
    const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
    expect(parse(nested(8))).toEqual(JSON.parse(nested(8)));
    refused(nested(9));
    refused(`${'{"a":'.repeat(9)}1${'}'.repeat(9)}`);
  });

  it('is refused however deep it is, without running out of stack', () => {
    refused('['.repeat(65_536));
    refused(`${'['.repeat(32_768)}${']'.repeat(32_768)}`);
    refused(`${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`);
  });

  it('keeps numbers out of range as JavaScript reads them, for the schema to refuse', () => {
    expect(parse('[1e999,-1e999,1e-999,9007199254740993]')).toEqual([Infinity, -Infinity, 0, 9007199254740992]);
  });

  it('takes a time in proportion to its size', () => {
    const hostile = [
      `"${'\\"'.repeat(32_000)}"`,
      `{"a"${' '.repeat(65_000)}:1}`,
      `"${'\\\\'.repeat(32_000)}`,
      `[${'"",'.repeat(20_000)}""]`,
    ];
    const startedAt = performance.now();
    for (const text of hostile) {
      try {
        parse(text);
      } catch {
        // Refused is as good.
      }
    }
    expect(performance.now() - startedAt).toBeLessThan(500);
  });
});
