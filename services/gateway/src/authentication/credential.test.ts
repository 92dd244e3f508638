import type { IncomingMessage } from 'node:http';
import { expect, it } from 'vitest';
import { credentialDigest, readCredential } from './credential.ts';

/** A request as Node parses it, which uses the first of two `Authorization` headers. */
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
const TOKEN = 'A-z_0'.repeat(8);

it.each([`Bearer ${KEY}`, `bearer ${KEY}`, `BEARER    ${KEY}`])('reads a key from %j', (value) => {
  const credential = { kind: 'key', text: KEY };
  expect(readCredential(request(['Authorization', value]))).toEqual(credential);
  expect(readCredential(request(['Cookie', 'session=abc'], ['Authorization', value]))).toEqual(credential);
});

it.each([
  '',
  'Bearer ',
  KEY,
  `Basic ${KEY}`,
  `Bearer\t${KEY}`,
  `Bearer ${KEY} x`,
  `Bearer ${KEY}, Bearer ${KEY}`,
  `BearerX ${KEY}`,
  'Bearer \xff\xfe',
  'Bearer \u0000',
  `Bearer ${'a'.repeat(257)}`,
])('reads a malformed key from %j, also with a session', (value) => {
  expect(readCredential(request(['Authorization', value], ['Cookie', 'session=abc']))).toEqual({ kind: 'malformed_key' });
});

it('reads a malformed key from two headers, even with one value', () => {
  for (const second of [`Bearer ${KEY}`, '']) {
    const headers = [
      ['Authorization', `Bearer ${KEY}`],
      ['X-A', 'b'],
      ['AUTHORIZATION', second],
    ] as const;
    expect(readCredential(request(...headers))).toEqual({ kind: 'malformed_key' });
  }
});

it.each([`session=${TOKEN}`, `a=b;session=${TOKEN}; c=d`, ` session = ${TOKEN} `, `session=${TOKEN}; session=other`])(
  'reads a session from the cookie %j',
  (value) =>
    expect(readCredential(request(['Cookie', value], ['Cookie', 'session=other']))).toEqual({ kind: 'session', text: TOKEN }),
);

it.each(['session=', 'session="abc"', 'session=a b', 'session=%00', 'session=%zz', `session=${'a'.repeat(129)}`, 'session=\xff'])(
  'reads an invalid session from %j',
  (value) => expect(readCredential(request(['Cookie', value]))).toEqual({ kind: 'session', text: '' }),
);

it.each(['', 'Session=abc', 'xsession=abc', '__proto__=abc', ';;;', 'session'])('reads no credential from %j', (value) => {
  expect(readCredential(request(['Cookie', value]))).toEqual({ kind: 'none' });
  expect(readCredential(request())).toEqual({ kind: 'none' });
});

it('digests kinds and texts differently, and shows neither', () => {
  const digests = [
    credentialDigest({ kind: 'key', text: KEY }),
    credentialDigest({ kind: 'session', text: KEY }),
    credentialDigest({ kind: 'key', text: 'b' }),
  ];
  expect(new Set(digests).size).toBe(3);
  expect(digests.join()).not.toContain(KEY);
});
