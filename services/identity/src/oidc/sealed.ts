import type { KeyObject } from 'node:crypto';
import { decrypt, encrypt } from '@latchkey/kit/secrets';
import { z } from 'zod';

/** A flow, or a sign-in that waits for a code, is good for so long. */
const LIFETIME_MS = 10 * 60_000;
/** Longest sealed text that is looked at. Browsers keep cookies of 4,096 bytes, with name and attributes. */
const SEALED_LENGTH_MAX = 3_840;
const BASE64URL = /^[A-Za-z0-9_-]+$/;

/** A browser's way to an issuer and back. */
const flowSchema = z.object({
  issuer: z.string(),
  redirectUri: z.string(),
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  /** Account to link, in the generation of sign-ins that its owner was proven in; undefined means a sign-in. */
  link: z.object({ accountId: z.string(), generation: z.number() }).optional(),
});

/** A sign-in whose first factor was shown. Its id is recorded as used once it has ended. */
const pendingSchema = z.object({
  id: z.string(),
  accountId: z.string(),
  generation: z.number(),
  /** Who showed it. Absent where the release before sealed it. */
  issuer: z.string().optional(),
  pictureUrl: z.string().optional(),
});

export type Flow = Readonly<z.output<typeof flowSchema>>;
export type PendingSignIn = Readonly<z.output<typeof pendingSchema>>;

const sealedSchema = z.object({ content: z.unknown(), expiresAtMs: z.number() });

/** What there is to seal. */
interface Contents {
  readonly flow: Flow;
  readonly pending: PendingSignIn;
}

const SCHEMAS: { readonly [K in keyof Contents]: z.ZodType<Contents[K]> } = { flow: flowSchema, pending: pendingSchema };

/** The end of what is sealed at that time. */
export function flowEnd(sealedAt: Date): Date {
  return new Date(sealedAt.getTime() + LIFETIME_MS);
}

/** Something sealed, and when it ends. */
export interface Sealed {
  readonly text: string;
  readonly expiresAt: Date;
}

/** Seals what a browser is to bring back, so that it can neither read nor change it, nor take the one for the other. */
export function seal<K extends keyof Contents>(key: KeyObject, kind: K, content: Contents[K], now: Date): Sealed {
  const expiresAt = flowEnd(now);
  const sealed = encrypt(key, JSON.stringify({ content, expiresAtMs: expiresAt.getTime() }), contextOf(kind));
  return { text: sealed.toString('base64url'), expiresAt };
}

/** Seals a sign-in that waits for a code, without a picture that would make it longer than a cookie may be. */
export function sealPending(key: KeyObject, { pictureUrl, ...pending }: PendingSignIn, now: Date): Sealed {
  const withPicture = seal(key, 'pending', { ...pending, pictureUrl }, now);
  return withPicture.text.length <= SEALED_LENGTH_MAX ? withPicture : seal(key, 'pending', pending, now);
}

/** What was sealed, or undefined for anything else and for what is over. */
export function unseal<K extends keyof Contents>(key: KeyObject, kind: K, text: string, now: Date): Contents[K] | undefined {
  if (text.length > SEALED_LENGTH_MAX || !BASE64URL.test(text)) return undefined;
  const opened = sealedSchema.safeParse(open(key, kind, text)).data;
  if (!opened || opened.expiresAtMs <= now.getTime()) return undefined;
  return SCHEMAS[kind].safeParse(opened.content).data;
}

function open(key: KeyObject, kind: keyof Contents, text: string): unknown {
  try {
    return JSON.parse(decrypt(key, Buffer.from(text, 'base64url'), contextOf(kind)));
  } catch {
    return undefined;
  }
}

function contextOf(kind: keyof Contents): string {
  return `oidc/${kind}`;
}
