import { createHash, randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { createApiKeyText, parseApiKeyText } from './api-key-text.ts';

test('every mistyped or exchanged character of a key is found', () => {
  const { text } = createApiKeyText(randomBytes);
  for (let i = 0; i < text.length; i += 1) {
    const character = text.charAt(i);
    for (const other of ['a', 'Z', '0', '_'].filter((candidate) => candidate !== character)) {
      expect(parseApiKeyText(text.slice(0, i) + other + text.slice(i + 1))).toBeUndefined();
    }
    const next = text.charAt(i + 1);
    if (next && next !== character)
      expect(parseApiKeyText(text.slice(0, i) + next + character + text.slice(i + 2))).toBeUndefined();
  }
});

test('text around a key is no part of one', () => {
  const { text } = createApiKeyText(randomBytes);
  for (const other of [
    '',
    ` ${text}`,
    `${text} `,
    `${text}\n`,
    `${text}\0`,
    text.slice(1),
    text.slice(0, -1),
    text.toUpperCase(),
  ]) {
    expect(parseApiKeyText(other)).toBeUndefined();
  }
});

test('all 62 characters are as likely', () => {
  // The same bytes in every run.
  const bytes = createHash('shake256', { outputLength: 1_000_000 }).update('seed').digest();
  let taken = 0;
  const random = (size: number) => {
    taken += size;
    return bytes.subarray(taken - size, taken);
  };
  const counts = new Map<string, number>();
  const keys = 2_000;
  for (let i = 0; i < keys; i += 1) {
    // Without the checksum, whose first digit is small.
    const drawn = createApiKeyText(random).text.slice(8, -6).replace('_', '');
    for (const character of drawn) counts.set(character, (counts.get(character) ?? 0) + 1);
  }
  const expected = (keys * 58) / 62;
  const chiSquare = [...counts.values()].reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
  expect(counts.size).toBe(62);
  // Of 61 degrees of freedom; bytes modulo 62 would give about 760.
  expect(chiSquare).toBeLessThan(130);
});
