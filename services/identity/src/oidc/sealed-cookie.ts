import type { KeyObject } from 'node:crypto';
import { decrypt, encrypt } from '@latchkey/kit/crypto/secrets';
import { z } from 'zod';

const LIFETIME_MS = 10 * 60_000;
/** Browsers store cookies of 4,096 bytes, name and attributes included. */
const SEALED_LENGTH_MAX = 3_840;
const BASE64URL = /^[A-Za-z0-9_-]+$/;

const CONTENTS = {
  flow: z.object({
    issuer: z.string(),
    redirectUri: z.string(),
    state: z.string(),
    nonce: z.string(),
    verifier: z.string(),
    /** The account, and the epoch of sign-ins of its verification; undefined for a sign-in. */
    link: z.object({ accountId: z.string(), generation: z.number() }).optional(),
  }),
  pending: z.object({
    /** Recorded as used when the sign-in completes. */
    id: z.string(),
    accountId: z.string(),
    generation: z.number(),
    issuer: z.string().optional(),
    pictureUrl: z.string().optional(),
  }),
};

type Kind = keyof typeof CONTENTS;
type Content<K extends Kind> = Readonly<z.output<(typeof CONTENTS)[K]>>;
export type Flow = Content<'flow'>;
export type PendingSignIn = Content<'pending'>;

export type Sealed = ReturnType<typeof seal>;

export function sealedUntil(now: Date): Date {
  return new Date(now.getTime() + LIFETIME_MS);
}

/** Encrypts content that a browser brings back, so that it cannot read, change or confuse it. */
export function seal<K extends Kind>(key: KeyObject, kind: K, content: Content<K>, now: Date) {
  const expiresAt = sealedUntil(now);
  const sealed = encrypt(key, JSON.stringify({ content, expiresAtMs: expiresAt.getTime() }), `oidc/${kind}`);
  return { text: sealed.toString('base64url'), expiresAt };
}

/** Seals a pending sign-in, without its picture where that would not fit in a cookie. */
export function sealPending(key: KeyObject, { pictureUrl, ...pending }: PendingSignIn, now: Date): Sealed {
  const withPicture = seal(key, 'pending', { ...pending, pictureUrl }, now);
  return withPicture.text.length <= SEALED_LENGTH_MAX ? withPicture : seal(key, 'pending', pending, now);
}

/** Decrypts; undefined for any other text and for expired content. */
export function unseal<K extends Kind>(key: KeyObject, kind: K, text: string, now: Date): Content<K> | undefined {
  if (text.length > SEALED_LENGTH_MAX || !BASE64URL.test(text)) return undefined;
  try {
    const { content, expiresAtMs } = JSON.parse(decrypt(key, Buffer.from(text, 'base64url'), `oidc/${kind}`));
    return expiresAtMs > now.getTime() ? (CONTENTS[kind].parse(content) as unknown as Content<K>) : undefined;
  } catch {
    return undefined;
  }
}
