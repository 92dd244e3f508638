import { randomUUID } from 'node:crypto';
import { newId } from '@latchkey/kit/id';
import { describe, expect, it } from 'vitest';
import { SECRET_KEY } from '../../testing/test-files.ts';
import { createDownloadUrls } from './download-url.ts';

const urls = createDownloadUrls({ secretKey: SECRET_KEY, publicUrl: 'https://files.example.com' });
const NOW = new Date('2026-05-12T09:00:00.000Z');
const after = (ms: number) => new Date(NOW.getTime() + ms);
const tokenOf = (url: string) => url.slice(url.lastIndexOf('/') + 1);

describe('a download URL', () => {
  it('names its file until the moment it was made for, and not from then on', () => {
    for (const id of [newId(), randomUUID(), 'ffffffff-ffff-ffff-ffff-ffffffffffff']) {
      const token = tokenOf(urls.create(id, after(300_000)));
      expect(urls.read(token, NOW)).toBe(id);
      expect(urls.read(token, after(299_999))).toBe(id);
      expect(urls.read(token, after(300_000))).toBeUndefined();
    }
  });

  it('is good for all of the second in which it ends', () => {
    const id = newId();
    const token = tokenOf(urls.create(id, after(1_001)));
    expect(urls.read(token, after(1_999))).toBe(id);
    expect(urls.read(token, after(2_000))).toBeUndefined();
  });

  it('is below the public URL, with or without a slash at its end', () => {
    for (const publicUrl of ['https://example.com/latchkey', 'https://example.com/latchkey/']) {
      const url = createDownloadUrls({ secretKey: SECRET_KEY, publicUrl }).create(newId(), NOW);
      expect(url).toMatch(/^https:\/\/example\.com\/latchkey\/downloads\/[\w-]{75}$/);
    }
  });

  it('names nothing with any character changed, added or left out', () => {
    const token = tokenOf(urls.create(newId(), after(60_000)));
    for (let i = 0; i < token.length; i += 1) {
      // Neighbours in the alphabet, which differ in the last bit only, and of the last character in one that carries nothing.
      for (const other of ['A', 'B', '_', '-', token[i] === 'g' ? 'h' : 'g']) {
        if (other === token[i]) continue;
        expect(urls.read(token.slice(0, i) + other + token.slice(i + 1), NOW)).toBeUndefined();
      }
      expect(urls.read(token.slice(0, i) + token.slice(i + 1), NOW)).toBeUndefined();
    }
    for (const more of ['A', '=', ' ', '\n', '\0']) expect(urls.read(token + more, NOW)).toBeUndefined();
  });

  it('names nothing made of the parts of two', () => {
    const [a, b] = [tokenOf(urls.create(newId(), after(60_000))), tokenOf(urls.create(newId(), after(90_000)))];
    expect(urls.read(a.slice(0, 32) + b.slice(32), NOW)).toBeUndefined();
  });

  it('names nothing under another secret', () => {
    const others = createDownloadUrls({ secretKey: `${SECRET_KEY}!`, publicUrl: 'https://files.example.com' });
    expect(urls.read(tokenOf(others.create(newId(), after(60_000))), NOW)).toBeUndefined();
  });

  it('names nothing for whatever else comes', () => {
    for (const token of ['', 'a', '../../etc/passwd', 'é'.repeat(75), '\0'.repeat(75), 'A'.repeat(75), 'A'.repeat(100_000)]) {
      expect(urls.read(token, NOW)).toBeUndefined();
    }
  });
});
