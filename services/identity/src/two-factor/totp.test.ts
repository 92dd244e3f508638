import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { codeAt, STEP_MS } from '../testing/two-factor.fixture.ts';
import { createTotpSecret, judgeCode, otpauthUrl } from './totp.ts';

/** The secret of RFC 6238, appendix B: `12345678901234567890`. */
const SECRET = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ';

/** The last six of the eight digits that the appendix has. */
test.each([
  [59, '287082'],
  [1_111_111_109, '081804'],
  [1_111_111_111, '050471'],
  [1_234_567_890, '005924'],
  [2_000_000_000, '279037'],
  [20_000_000_000, '353130'],
])('the code %s seconds after 1970 is that of RFC 6238', (seconds, code) => {
  const now = new Date(seconds * 1_000);
  expect(codeAt(SECRET, now)).toBe(code);
  expect(judgeCode(SECRET, code, now, null)).toEqual({ step: Math.floor(seconds / 30) });
});

const NOW = new Date('2026-05-12T09:00:00.000Z');
const STEP = NOW.getTime() / STEP_MS;
const codeOf = (steps: number) => codeAt(SECRET, new Date(NOW.getTime() + steps * STEP_MS));

test('the code of one step before or after is taken, and of no other', () => {
  const accepted = [-2, -1, 0, 1, 2].map((steps) => judgeCode(SECRET, codeOf(steps), NOW, null));
  expect(accepted).toEqual(['wrong', { step: STEP - 1 }, { step: STEP }, { step: STEP + 1 }, 'wrong']);
  const lastMoment = new Date(NOW.getTime() + STEP_MS - 1);
  expect(judgeCode(SECRET, codeOf(-1), lastMoment, null)).toEqual({ step: STEP - 1 });
  expect(judgeCode(SECRET, codeOf(-1), new Date(NOW.getTime() + STEP_MS), null)).toBe('wrong');
});

test('after a code, those of its step and of steps before are not taken', () => {
  const after = (lastStep: number) => [-1, 0, 1].map((steps) => judgeCode(SECRET, codeOf(steps), NOW, lastStep));
  expect(after(STEP - 1)).toEqual(['taken', { step: STEP }, { step: STEP + 1 }]);
  expect(after(STEP)).toEqual(['wrong', 'taken', { step: STEP + 1 }]);
  expect(after(STEP + 1)).toEqual(['wrong', 'wrong', 'taken']);
});

test('a secret is 160 bits of the randomness that is given', () => {
  const secrets = Array.from({ length: 20 }, () => createTotpSecret(randomBytes));
  expect(new Set(secrets).size).toBe(20);
  for (const secret of secrets) expect(secret).toMatch(/^[A-Z2-7]{32}$/);
  expect(createTotpSecret((bytes) => Buffer.from('12345678901234567890').subarray(0, bytes))).toBe(SECRET);
});

test('the URL says to authenticator apps all that they need', () => {
  const url = new URL(otpauthUrl(SECRET, 'ada+two@example.com'));
  expect([url.protocol, url.host]).toEqual(['otpauth:', 'totp']);
  expect(decodeURIComponent(url.pathname)).toBe('/Latchkey:ada+two@example.com');
  expect(Object.fromEntries(url.searchParams)).toEqual({
    issuer: 'Latchkey',
    secret: SECRET,
    algorithm: 'SHA1',
    digits: '6',
    period: '30',
  });
});
