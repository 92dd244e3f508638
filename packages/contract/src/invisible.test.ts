import { expect, it } from 'vitest';
import { withoutInvisible } from './invisible.ts';

it('normalises a name as long as any may be, with invisible characters around and inside', () => {
  const invisible = ' \0\u200b\u202e\u{e0041}'.repeat(1_000);
  expect(withoutInvisible(invisible + 'e\u0301\u200d'.repeat(64) + invisible)).toBe('\u00e9'.repeat(64));
});

it('does not normalise a text too long for a name, for which NFC takes quadratic time', () => {
  const text = `a${'\u0315\u0316'.repeat(16_000)}`;
  expect(withoutInvisible(` ${text} `)).toBe(text);
});
