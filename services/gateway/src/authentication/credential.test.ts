import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { credentialDigest, readCredential } from './credential.ts';

/** A request with these headers, as Node hands it over: of two `Authorization` headers it keeps the first in silence. */
function request(...headers: ReadonlyArray<readonly [string, string]>): IncomingMessage {
  const byName: Record<string, string> = {};
  for (const [name, value] of headers) {
    const lower = name.toLowerCase();
    if (lower === 'cookie' && byName[lower] !== undefined) byName[lower] += `; ${value}`;
    else byName[lower] ??= value;
  }
  return { headers: byName, rawHeaders: headers.flat() } as unknown as IncomingMessage;
}

const KEY = `lk_mgmt_${'a'.repeat(16)}_${'b'.repeat(48)}`;
const MALFORMED = { kind: 'malformed_key' };

describe('a management key', () => {
  it.each([`Bearer ${KEY}`, `bearer ${KEY}`, `BEARER ${KEY}`, `Bearer    ${KEY}`])('is read from %j', (value) => {
    expect(readCredential(request(['Authorization', value]))).toEqual({ kind: 'key', text: KEY });
  });

  it.each([
    '',
    ' ',
    'Bearer',
    'Bearer ',
    KEY,
    `Basic ${KEY}`,
    `Bearer\t${KEY}`,
    `Bearer ${KEY} `,
    `Bearer ${KEY} x`,
    `Bearer ${KEY}, Bearer ${KEY}`,
    ` Bearer ${KEY}`,
    `Bearer: ${KEY}`,
    `BearerX ${KEY}`,
    `Token ${KEY}`,
    'Bearer \xff\xfe',
    'Bearer \u0000',
    `Bearer ${'a'.repeat(257)}`,
  ])('is malformed in %j, and not a missing one', (value) => {
    expect(readCredential(request(['Authorization', value]))).toEqual(MALFORMED);
  });

  it('is malformed when the header is given twice, even with one value', () => {
    expect(readCredential(request(['Authorization', `Bearer ${KEY}`], ['authorization', `Bearer ${KEY}`]))).toEqual(MALFORMED);
    expect(readCredential(request(['authorization', `Bearer ${KEY}`], ['X-A', 'b'], ['AUTHORIZATION', '']))).toEqual(MALFORMED);
  });

  it('makes a cookie beside it count for nothing', () => {
    expect(readCredential(request(['Cookie', 'session=abc'], ['Authorization', `Bearer ${KEY}`])).kind).toBe('key');
    expect(readCredential(request(['Authorization', ''], ['Cookie', 'session=abc']))).toEqual(MALFORMED);
  });
});

describe('a session', () => {
  const TOKEN = 'A-z_0'.repeat(8);

  it.each([`session=${TOKEN}`, `a=b; session=${TOKEN}; c=d`, `a=b;session=${TOKEN}`, ` session = ${TOKEN} `])(
    'is read from the cookie %j',
    (value) => {
      expect(readCredential(request(['Cookie', value]))).toEqual({ kind: 'session', text: TOKEN });
    },
  );

  it('is the first of two', () => {
    expect(readCredential(request(['Cookie', `session=${TOKEN}; session=other`]))).toEqual({ kind: 'session', text: TOKEN });
    expect(readCredential(request(['Cookie', `session=${TOKEN}`], ['Cookie', 'session=other']))).toEqual({
      kind: 'session',
      text: TOKEN,
    });
  });

  it.each([
    'session=',
    'session="abc"',
    'session=a b',
    'session=%00',
    'session=%zz',
    `session=${'a'.repeat(129)}`,
    'session=\xff',
    'session=a.b',
  ])('is there but valid for nobody in %j', (value) => {
    expect(readCredential(request(['Cookie', value]))).toEqual({ kind: 'session', text: '' });
  });

  it.each(['', 'other=1', 'Session=abc', 'xsession=abc', '__proto__=abc', 'constructor=abc', ';;;', 'session'])(
    'is missing in %j',
    (value) => {
      expect(readCredential(request(['Cookie', value]))).toEqual({ kind: 'none' });
    },
  );

  it('is missing without a cookie', () => {
    expect(readCredential(request())).toEqual({ kind: 'none' });
  });
});

describe('the name under which a credential is remembered', () => {
  it('tells kinds and texts apart and shows neither', () => {
    const digests = [credentialDigest('key', 'a'), credentialDigest('session', 'a'), credentialDigest('key', 'b')];
    expect(new Set(digests).size).toBe(3);
    expect(credentialDigest('key', KEY)).not.toContain(KEY);
    expect(credentialDigest('key', KEY)).toBe(credentialDigest('key', KEY));
  });
});
