import { generateKeySync, randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { createRecoveryCodes, hashRecoveryCode, parseCode } from './code-text.ts';

test.each([
  ['123456', { kind: 'one-time', text: '123456' }],
  ['000000', { kind: 'one-time', text: '000000' }],
  ['123 456', { kind: 'one-time', text: '123456' }],
  [' 123-456\n', { kind: 'one-time', text: '123456' }],
  ['abcd-efgh-ijkl-mnop', { kind: 'recovery', text: 'ABCDEFGHIJKLMNOP' }],
  ['ABCD-efgh-2345-mnop', { kind: 'recovery', text: 'ABCDEFGH2345MNOP' }],
  ['abcdefghijklmnop', { kind: 'recovery', text: 'ABCDEFGHIJKLMNOP' }],
  ['abcd efgh ijkl mnop ', { kind: 'recovery', text: 'ABCDEFGHIJKLMNOP' }],
])('%j is read as a code', (given, code) => {
  expect(parseCode(given)).toEqual(code);
});

test.each([
  '',
  ' ',
  '-',
  '12345',
  '1234567',
  '12345a',
  '１２３４５６',
  '+12345',
  '1e5000',
  '12345\0',
  '\ud80012345',
  'abcdefghijklmno',
  'abcdefghijklmnopq',
  'abcdefgh1jklmnop',
  'abcdefghıjklmnop',
  `123456${' '.repeat(59)}`,
])('%j is no code', (given) => {
  expect(parseCode(given)).toBeUndefined();
});

test('recovery codes are ten, of 80 random bits each, in groups that can be read', () => {
  const codes = createRecoveryCodes(randomBytes);
  expect(new Set(codes).size).toBe(10);
  for (const code of codes) {
    expect(code).toMatch(/^[a-z2-7]{4}(-[a-z2-7]{4}){3}$/);
    expect(parseCode(code)?.kind).toBe('recovery');
  }
  const asked: number[] = [];
  createRecoveryCodes((bytes) => {
    asked.push(bytes);
    return randomBytes(bytes);
  });
  expect(asked).toEqual(Array(10).fill(10));
});

test('the hash of a recovery code is that of its account and key', () => {
  const code = { kind: 'recovery', text: 'ABCDEFGHIJKLMNOP' } as const;
  const [key, other] = [generateKeySync('hmac', { length: 256 }), generateKeySync('hmac', { length: 256 })];
  const hashes = [hashRecoveryCode(key, 'a', code), hashRecoveryCode(key, 'b', code), hashRecoveryCode(other, 'a', code)];
  expect(new Set(hashes.map((hash) => hash.toString('hex'))).size).toBe(3);
  expect(hashRecoveryCode(key, 'a', code)).toEqual(hashes[0]);
});
