import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** A key with the right form and checksum that was never created. */
export function forgeKey(publicId = randomText(16)): string {
  const body = `lk_mgmt_${publicId}_${randomText(42)}`;
  let rest = crc32(body);
  let digits = '';
  for (let i = 0; i < 6; i += 1) {
    digits = ALPHABET.charAt(rest % 62) + digits;
    rest = Math.floor(rest / 62);
  }
  return body + digits;
}

/** The same key with one character of its secret mistyped, so that its checksum is wrong. */
export function mistype(key: string): string {
  const at = key.length - 20;
  return `${key.slice(0, at)}${key[at] === 'a' ? 'b' : 'a'}${key.slice(at + 1)}`;
}

function randomText(length: number): string {
  return [...randomBytes(length)].map((byte) => ALPHABET.charAt(byte % 62)).join('');
}
