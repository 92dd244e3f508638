import type { KeyObject } from 'node:crypto';
import { hmac } from '@latchkey/kit/secrets';
import { Secret } from 'otpauth';

/** How many recovery codes an account gets (decisions 4). */
const RECOVERY_CODES = 10;
/** 80 bits: 16 characters of base32. */
const RECOVERY_CODE_BYTES = 10;
const GROUP = /.{4}(?=.)/g;

const SEPARATORS = /[\s-]/g;
const DIGITS = /^[0-9]{6}$/;
const RECOVERY = /^[a-z2-7]{16}$/i;
/** What is longer is no code, whatever is in it. */
const LENGTH_MAX = 64;

/** A code as its owner gave it: of the authenticator app, or one to recover with. */
export type GivenCode = { readonly kind: 'one-time' | 'recovery'; readonly text: string };

/** Reads a code, in any case, with or without dashes and white space; undefined for text that can be none. */
export function parseCode(given: string): GivenCode | undefined {
  if (given.length > LENGTH_MAX) return undefined;
  const text = given.replace(SEPARATORS, '');
  if (DIGITS.test(text)) return { kind: 'one-time', text };
  return RECOVERY.test(text) ? { kind: 'recovery', text: text.toUpperCase() } : undefined;
}

/** New recovery codes, as they are shown: `abcd-efgh-ijkl-mnop`. */
export function createRecoveryCodes(random: (bytes: number) => Buffer): string[] {
  return Array.from({ length: RECOVERY_CODES }, () => {
    const bytes = Uint8Array.from(random(RECOVERY_CODE_BYTES));
    return new Secret({ buffer: bytes.buffer }).base32.toLowerCase().replace(GROUP, '$&-');
  });
}

/** What a recovery code is stored as: bound to its account. */
export function hashRecoveryCode(key: KeyObject, accountId: string, code: GivenCode): Buffer {
  return hmac(key, `${accountId} ${code.text}`);
}
