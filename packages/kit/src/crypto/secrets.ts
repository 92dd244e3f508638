import * as crypto from 'node:crypto';

/**
 * Derives a 256-bit key for one purpose from the deployment's secret (HKDF-SHA-256, RFC 5869). As a
 * Buffer, it would take several times the cost of a short HMAC or decryption.
 */
export function deriveKey(secret: string, purpose: string): crypto.KeyObject {
  return crypto.createSecretKey(new Uint8Array(crypto.hkdfSync('sha256', secret, '', `latchkey/${purpose}`, 32)));
}

export function hmac(key: crypto.KeyObject, text: string): Buffer {
  return crypto.createHmac('sha256', key).update(text).digest();
}

/** Compares two texts in a time that does not depend on where they differ. */
export function constantTimeEqual(a: string, b: string): boolean {
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && crypto.timingSafeEqual(left, right);
}

const FORMAT_VERSION = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Encrypts a text with AES-256-GCM. Returns version (1 byte), nonce (12), tag (16), ciphertext.
 * Decryption needs the same `context`, so that rows can't be swapped.
 */
export function encrypt(key: crypto.KeyObject, text: string, context: string): Buffer {
  const nonce = crypto.randomBytes(NONCE_BYTES);
  const cipher = crypto.createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context));
  const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([Buffer.of(FORMAT_VERSION), nonce, cipher.getAuthTag(), body]);
}

/** Decrypts; throws when the key, the context or any bit differs. */
export function decrypt(key: crypto.KeyObject, sealed: Buffer, context: string): string {
  if (sealed[0] !== FORMAT_VERSION) throw new Error('Unknown ciphertext version');
  const tagStart = 1 + NONCE_BYTES;
  const bodyStart = tagStart + TAG_BYTES;
  // Without the length, Node takes a tag that was cut short, which is easier to forge.
  const decipher = crypto
    .createDecipheriv('aes-256-gcm', key, sealed.subarray(1, tagStart), { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(context))
    .setAuthTag(sealed.subarray(tagStart, bodyStart));
  return decipher.update(sealed.subarray(bodyStart), undefined, 'utf8') + decipher.final('utf8');
}
