import { createSecretKey } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { constantTimeEqual, decrypt, deriveKey, encrypt, hmac } from './secrets.ts';

const key = deriveKey('a deployment secret of 32 letters', 'totp');

describe('encryption', () => {
  const sealed = encrypt(key, 'übergeheim', 'account-1');

  it('gives back the text, and the empty one', () => {
    expect(decrypt(key, sealed, 'account-1')).toBe('übergeheim');
    expect(decrypt(key, encrypt(key, '', 'c'), 'c')).toBe('');
  });

  it('never gives the same twice', () => {
    expect(encrypt(key, 'übergeheim', 'account-1').equals(sealed)).toBe(false);
  });

  it('is of no use with another key or for another owner', () => {
    expect(() => decrypt(deriveKey('a deployment secret of 32 letters', 'other'), sealed, 'account-1')).toThrow();
    expect(() => decrypt(key, sealed, 'account-2')).toThrow();
  });

  it('notices every bit that was changed', () => {
    for (let bit = 0; bit < sealed.length * 8; bit += 1) {
      const tampered = Buffer.from(sealed);
      tampered[bit >> 3] = (tampered[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(() => decrypt(key, tampered, 'account-1')).toThrow();
    }
  });

  it('notices everything that was cut off or added', () => {
    for (let length = 0; length < sealed.length; length += 1) {
      expect(() => decrypt(key, sealed.subarray(0, length), 'account-1')).toThrow();
    }
    expect(() => decrypt(key, Buffer.concat([sealed, Buffer.of(0)]), 'account-1')).toThrow();
  });

  it('refuses a tag that was cut short, where nothing follows it', () => {
    const empty = encrypt(key, '', 'c');
    for (const tagBytes of [4, 8, 12, 15]) expect(() => decrypt(key, empty.subarray(0, 13 + tagBytes), 'c')).toThrow();
  });
});

describe('keys', () => {
  it('are the same for a secret and a purpose, and differ for each other one', () => {
    const again = deriveKey('a deployment secret of 32 letters', 'totp');
    expect(again.equals(key)).toBe(true);
    expect(again.symmetricKeySize).toBe(32);
    expect(deriveKey('a deployment secret of 32 letters', 'totp2').equals(key)).toBe(false);
    expect(deriveKey('another deployment secret, longer', 'totp').equals(key)).toBe(false);
  });
});

it('computes HMAC-SHA-256 (RFC 4231, test case 2)', () => {
  const expected = '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843';
  expect(hmac(createSecretKey('Jefe', 'utf8'), 'what do ya want for nothing?').toString('hex')).toBe(expected);
});

it.each([
  ['a', 'a', true],
  ['', '', true],
  ['a', 'b', false],
  ['a', 'aa', false],
  ['ä', 'a', false],
])('compares %j with %j', (a, b, equal) => {
  expect(constantTimeEqual(a, b)).toBe(equal);
});
