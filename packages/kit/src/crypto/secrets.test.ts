import { createSecretKey } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { constantTimeEqual, decrypt, deriveKey, encrypt, hmac } from './secrets.ts';

const SECRET = 'a deployment secret of 32 letters';
const key = deriveKey(SECRET, 'totp');

describe('encryption', () => {
  const sealed = encrypt(key, 'übergeheim', 'account-1');

  it('returns the text, and never the same ciphertext twice', () => {
    expect(decrypt(key, sealed, 'account-1')).toBe('übergeheim');
    expect(decrypt(key, encrypt(key, '', 'c'), 'c')).toBe('');
    expect(encrypt(key, 'übergeheim', 'account-1').equals(sealed)).toBe(false);
  });

  it('fails with another key, for another owner, and for any changed, missing or added byte', () => {
    const attempts = [
      () => decrypt(deriveKey(SECRET, 'other'), sealed, 'account-1'),
      () => decrypt(key, sealed, 'account-2'),
      () => decrypt(key, Buffer.concat([sealed, Buffer.of(0)]), 'account-1'),
      ...Array.from(sealed, (byte, i) => () => decrypt(key, Buffer.from(sealed).fill(byte ^ 1, i, i + 1), 'account-1')),
      ...Array.from(sealed, (_, length) => () => decrypt(key, sealed.subarray(0, length), 'account-1')),
    ];
    for (const attempt of attempts) expect(attempt).toThrow();
  });

  it('rejects a truncated tag at the end', () => {
    const empty = encrypt(key, '', 'c');
    for (const tagBytes of [4, 8, 12, 15]) expect(() => decrypt(key, empty.subarray(0, 13 + tagBytes), 'c')).toThrow();
  });
});

it('derives one key of 256 bits for each secret and purpose', () => {
  expect(deriveKey(SECRET, 'totp').equals(key)).toBe(true);
  expect(key.symmetricKeySize).toBe(32);
  expect(deriveKey(SECRET, 'totp2').equals(key)).toBe(false);
  expect(deriveKey('another deployment secret, longer', 'totp').equals(key)).toBe(false);
});

it('computes HMAC-SHA-256 (RFC 4231, test case 2)', () => {
  const expected = '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843';
  expect(hmac(createSecretKey('Jefe', 'utf8'), 'what do ya want for nothing?').toString('hex')).toBe(expected);
});

it.each([
  ['a', 'a', true],
  ['a', 'b', false],
  ['a', 'aa', false],
  ['ä', 'a', false],
])('compares %j with %j: %j', (a, b, equal) => {
  expect(constantTimeEqual(a, b)).toBe(equal);
});
