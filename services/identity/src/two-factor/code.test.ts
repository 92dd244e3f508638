import { generateKeySync } from 'node:crypto';
import { expect, test } from 'vitest';
import { codeAt, STEP_MS } from '../testing/two-factor.ts';
import { createRecoveryCodes, createTotpSecret, hashRecoveryCode, otpauthUrl, parseCode, verifyTotp } from './code.ts';

/** The secret of RFC 6238, appendix B: `12345678901234567890`. */
const SECRET = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ';
const NOW = new Date('2026-05-12T09:00:00.000Z');
const STEP = NOW.getTime() / STEP_MS;
const codeOf = (steps: number) => codeAt(SECRET, new Date(NOW.getTime() + steps * STEP_MS));

test.each<[string, object | undefined]>([
  ['123456', { kind: 'one-time', text: '123456' }],
  [' 123-456\n', { kind: 'one-time', text: '123456' }],
  ['ABCD-efgh-2345-mnop', { kind: 'recovery', text: 'ABCDEFGH2345MNOP' }],
  ['abcd efgh ijkl mnop ', { kind: 'recovery', text: 'ABCDEFGHIJKLMNOP' }],
  ...[
    '',
    '12345',
    '1234567',
    '12345a',
    '１２３４５６',
    '12345\0',
    'abcdefghijklmno',
    'abcdefgh1jklmnop',
    `123456${' '.repeat(59)}`,
  ].map((text): [string, undefined] => [text, undefined]),
])('%j is read as %j', (given, code) => {
  expect(parseCode(given)).toEqual(code);
});

test('there are ten recovery codes of 80 random bits, hashed for their account under a key', () => {
  const codes = createRecoveryCodes();
  expect(new Set(codes).size).toBe(10);
  for (const code of codes) expect(code).toMatch(/^[a-z2-7]{4}(-[a-z2-7]{4}){3}$/);
  const [key, other] = [generateKeySync('hmac', { length: 256 }), generateKeySync('hmac', { length: 256 })];
  const [one = '', two = ''] = codes;
  const hashes = [
    hashRecoveryCode(key, 'a', one),
    hashRecoveryCode(key, 'b', one),
    hashRecoveryCode(other, 'a', one),
    hashRecoveryCode(key, 'a', two),
  ];
  expect(new Set(hashes.map((hash) => hash.toString('hex'))).size).toBe(4);
  expect(hashRecoveryCode(key, 'a', one.toUpperCase().replaceAll('-', ''))).toEqual(hashes[0]);
});

/** The last six of the eight digits in the appendix. */
test.each([
  [59, '287082'],
  [1_111_111_109, '081804'],
  [20_000_000_000, '353130'],
])('the code %s seconds after 1970 is that of RFC 6238', (seconds, code) => {
  const now = new Date(seconds * 1_000);
  expect(codeAt(SECRET, now)).toBe(code);
  expect(verifyTotp(SECRET, code, now, null)).toBe(Math.floor(seconds / 30));
});

test('codes of the step before, now and after are accepted, each step once', () => {
  const verified = (lastStep: number | null) =>
    [-2, -1, 0, 1, 2].map((steps) => verifyTotp(SECRET, codeOf(steps), NOW, lastStep));
  expect(verified(null)).toEqual(['wrong', STEP - 1, STEP, STEP + 1, 'wrong']);
  expect(verified(STEP)).toEqual(['wrong', 'wrong', 'used', STEP + 1, 'wrong']);
});

test('a secret is 160 random bits, and its URL holds all parameters', () => {
  expect(createTotpSecret()).toMatch(/^[A-Z2-7]{32}$/);
  const url = new URL(otpauthUrl(SECRET, 'ada+two@example.com'));
  expect(decodeURIComponent(url.href.split('?')[0] ?? '')).toBe('otpauth://totp/Latchkey:ada+two@example.com');
  const parameters = { issuer: 'Latchkey', secret: SECRET, algorithm: 'SHA1', digits: '6', period: '30' };
  expect(Object.fromEntries(url.searchParams)).toEqual(parameters);
});
