import { createHash, type KeyObject } from 'node:crypto';
import { hmac } from '@latchkey/kit/crypto/secrets';

const TOKEN_BYTES = 32;
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

/** A new session token, 256 random bits, and the hash that is stored of it. */
export function createSessionToken(random: (bytes: number) => Buffer): { text: string; hash: Buffer } {
  const text = random(TOKEN_BYTES).toString('base64url');
  return { text, hash: sha256(text) };
}

/** The stored hash of a token; undefined for text that cannot be a token. */
export function hashSessionToken(text: string): Buffer | undefined {
  return TOKEN.test(text) ? sha256(text) : undefined;
}

/** The CSRF token of a session, constant for its lifetime. */
export function csrfTokenOf(csrfKey: KeyObject, sessionId: string): string {
  return hmac(csrfKey, sessionId).toString('base64url');
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
