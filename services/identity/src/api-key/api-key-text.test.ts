import { expect, test } from 'vitest';
import { createApiKeyText, parseApiKeyText } from './api-key-text.ts';

test('every mistyped or exchanged character of a key is found', () => {
  const { text } = createApiKeyText();
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

test('text around a key does not belong to it', () => {
  const { text } = createApiKeyText();
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
