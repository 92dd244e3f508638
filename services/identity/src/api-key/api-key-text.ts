import { crc32 } from 'node:zlib';
import { customRandom } from 'nanoid';

const PREFIX = 'lk_mgmt_';
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const PUBLIC_ID_LENGTH = 16;
const SECRET_LENGTH = 48;
/** Room for 32 bits: 62 to the power of 6 is more than 2 to the power of 32. */
const CHECKSUM_LENGTH = 6;
const SHAPE = new RegExp(`^${PREFIX}([0-9A-Za-z]{${PUBLIC_ID_LENGTH}})_[0-9A-Za-z]{${SECRET_LENGTH}}$`);

/** The text of a management key, and the part of it that may be shown and looked up. */
export interface ApiKeyText {
  readonly text: string;
  readonly publicId: string;
}

/** A new management key, `lk_mgmt_<publicId>_<secret>` (decisions 5): 250 random bits in the secret, and its checksum. */
export function createApiKeyText(random: (bytes: number) => Buffer): ApiKeyText {
  const draw = customRandom(ALPHABET, SECRET_LENGTH, random);
  const publicId = draw(PUBLIC_ID_LENGTH);
  const body = `${PREFIX}${publicId}_${draw(SECRET_LENGTH - CHECKSUM_LENGTH)}`;
  return { text: body + checksum(body), publicId };
}

/** A key as a client sent it, or undefined for text that was never one: no look-up is needed to refuse it. */
export function parseApiKeyText(text: string): ApiKeyText | undefined {
  const publicId = SHAPE.exec(text)?.[1];
  if (!publicId || checksum(text.slice(0, -CHECKSUM_LENGTH)) !== text.slice(-CHECKSUM_LENGTH)) return undefined;
  return { text, publicId };
}

/**
 * CRC-32 of all that comes before it in base 62, most significant digit first, padded with `0`. It finds every mistyped or exchanged
 * character. It is no secret: what proves a key is its HMAC.
 */
function checksum(body: string): string {
  let rest = crc32(body);
  let digits = '';
  for (let i = 0; i < CHECKSUM_LENGTH; i += 1) {
    digits = ALPHABET.charAt(rest % ALPHABET.length) + digits;
    rest = Math.floor(rest / ALPHABET.length);
  }
  return digits;
}
