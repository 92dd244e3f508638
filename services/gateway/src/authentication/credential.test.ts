import type { IncomingMessage } from 'node:http';
import { expect, it } from 'vitest';
import { credentialDigest, readCredential } from './credential.ts';

const request = (headers: { authorization?: string; cookie?: string } = {}) =>
  ({ headers, rawHeaders: Object.entries(headers).flat() }) as unknown as IncomingMessage;

const KEY = `lk_mgmt_${'a'.repeat(16)}_${'b'.repeat(48)}`;
const TOKEN = 'A-z_0'.repeat(8);

it.each([`Bearer ${KEY}`, `bearer ${KEY}`, `BEARER    ${KEY}`])('reads a key from %j', (value) => {
  const credential = { kind: 'key', text: KEY };
  expect(readCredential(request({ authorization: value }))).toEqual(credential);
});

it.each([
  ...['', 'Bearer ', KEY, `Basic ${KEY}`, `Bearer\t${KEY}`, `Bearer ${KEY} x`, `Bearer ${KEY}, Bearer ${KEY}`],
  ...[`BearerX ${KEY}`, 'Bearer \xff\xfe', 'Bearer \u0000', `Bearer ${'a'.repeat(257)}`],
])('reads a malformed key from %j, also with a session', (authorization) => {
  expect(readCredential(request({ authorization, cookie: 'session=abc' }))).toEqual({ kind: 'malformed_key' });
});

it.each([`session=${TOKEN}`, `a=b;session=${TOKEN}; c=d`, ` session = ${TOKEN} `, `session=${TOKEN}; session=other`])(
  'reads a session from the cookie %j',
  (cookie) => expect(readCredential(request({ cookie }))).toEqual({ kind: 'session', text: TOKEN }),
);

it.each(['session=', 'session="abc"', 'session=a b', 'session=%00', 'session=%zz', `session=${'a'.repeat(129)}`, 'session=\xff'])(
  'reads an invalid session from %j',
  (cookie) => expect(readCredential(request({ cookie }))).toEqual({ kind: 'session', text: '' }),
);

it.each(['', 'Session=abc', 'xsession=abc', '__proto__=abc', ';;;', 'session'])('reads no credential from %j', (cookie) => {
  expect(readCredential(request({ cookie }))).toEqual({ kind: 'none' });
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
