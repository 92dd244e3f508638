import { createHash, type KeyObject } from 'node:crypto';
import { hmac } from '@latchkey/kit/secrets';

const TOKEN_BYTES = 32;
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

/** A session's token in the two forms it has. Only the hash is stored. */
export interface SessionToken {
  readonly text: string;
  readonly hash: Buffer;
}

/** A new session's token: 256 random bits in base64url. */
export function createSessionToken(random: (bytes: number) => Buffer): SessionToken {
  const text = random(TOKEN_BYTES).toString('base64url');
  return { text, hash: sha256(text) };
}

/** The hash that a token is looked up by, or undefined for text that can't be a token. */
export function hashSessionToken(text: string): Buffer | undefined {
  return TOKEN.test(text) ? sha256(text) : undefined;
}

/** The token that state-changing requests of a session must carry: bound to the session, and the same as long as it lives. */
export function csrfTokenOf(csrfKey: KeyObject, sessionId: string): string {
  return hmac(csrfKey, sessionId).toString('base64url');
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
