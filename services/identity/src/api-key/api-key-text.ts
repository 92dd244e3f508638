import { crc32 } from 'node:zlib';
import { customAlphabet } from 'nanoid';

const PREFIX = 'lk_mgmt_';
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const PUBLIC_ID_LENGTH = 16;
const SECRET_LENGTH = 48;
const draw = customAlphabet(ALPHABET);
/** 62^6 is more than 2^32. */
const CHECKSUM_LENGTH = 6;
const SHAPE = new RegExp(`^${PREFIX}([0-9A-Za-z]{${PUBLIC_ID_LENGTH}})_[0-9A-Za-z]{${SECRET_LENGTH}}$`);

/** A new key, `lk_mgmt_<publicId>_<secret>`, with 250 random bits in its secret. */
export function createApiKeyText() {
  const publicId = draw(PUBLIC_ID_LENGTH);
  const body = `${PREFIX}${publicId}_${draw(SECRET_LENGTH - CHECKSUM_LENGTH)}`;
  return { text: body + checksum(body), publicId };
}

/** Parses a key; undefined for text that was never one, which is rejected without a query. */
export function parseApiKeyText(text: string) {
  const publicId = SHAPE.exec(text)?.[1];
  if (!publicId || checksum(text.slice(0, -CHECKSUM_LENGTH)) !== text.slice(-CHECKSUM_LENGTH)) return undefined;
  return { text, publicId };
}

/** CRC-32 in base 62, most significant digit first. It detects typing errors and proves nothing. */
function checksum(body: string): string {
  let rest = crc32(body);
  let digits = '';
  for (let i = 0; i < CHECKSUM_LENGTH; i += 1) {
    digits = ALPHABET.charAt(rest % ALPHABET.length) + digits;
    rest = Math.floor(rest / ALPHABET.length);
  }
  return digits;
}
