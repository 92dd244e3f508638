import type { KeyObject } from 'node:crypto';
import { hmac } from '@latchkey/kit/crypto/secrets';
import { Secret, TOTP } from 'otpauth';

/** The parameters that every authenticator app supports. */
const PARAMETERS = { algorithm: 'SHA1', digits: 6, period: 30 } as const;
/** Steps that the owner's clock may differ, either way. */
const DRIFT_STEPS = 1;
/** 160 bits, as RFC 4226, 4 recommends. */
const SECRET_BYTES = 20;
const ISSUER = 'Latchkey';

const RECOVERY_CODE_COUNT = 10;
/** 80 bits: 16 characters of base32. */
const RECOVERY_CODE_BYTES = 10;
const GROUP = /.{4}(?=.)/g;

const SEPARATORS = /[\s-]/g;
const ONE_TIME = /^[0-9]{6}$/;
const RECOVERY = /^[a-z2-7]{16}$/i;
const LENGTH_MAX = 64;

export type Code = { readonly kind: 'one-time' | 'recovery'; readonly text: string };

export function parseCode(given: string): Code | undefined {
  if (given.length > LENGTH_MAX) return undefined;
  const text = given.replace(SEPARATORS, '');
  if (ONE_TIME.test(text)) return { kind: 'one-time', text };
  return RECOVERY.test(text) ? { kind: 'recovery', text: text.toUpperCase() } : undefined;
}

/** Ten new recovery codes, in the form `abcd-efgh-ijkl-mnop`. */
export function createRecoveryCodes(): string[] {
  const create = () => new Secret({ size: RECOVERY_CODE_BYTES }).base32.toLowerCase().replace(GROUP, '$&-');
  return Array.from({ length: RECOVERY_CODE_COUNT }, create);
}

/** The stored form of a recovery code, bound to its account. */
export function hashRecoveryCode(key: KeyObject, accountId: string, text: string): Buffer {
  return hmac(key, `${accountId} ${parseCode(text)?.text}`);
}

export function createTotpSecret(): string {
  return new Secret({ size: SECRET_BYTES }).base32;
}

export function otpauthUrl(secret: string, email: string): string {
  return new TOTP({ ...PARAMETERS, issuer: ISSUER, label: email, secret }).toString();
}

/**
 * Checks a one-time code (RFC 6238).
 * @param lastStep time step of the last accepted code; its code and earlier ones are rejected
 * @returns the time step of a valid code, `used` for the last accepted code, else `wrong`
 */
export function verifyTotp(secret: string, token: string, now: Date, lastStep: number | null): number | 'used' | 'wrong' {
  const timestamp = now.getTime();
  const delta = TOTP.validate({ ...PARAMETERS, secret: Secret.fromBase32(secret), token, timestamp, window: DRIFT_STEPS });
  if (delta === null) return 'wrong';
  const step = TOTP.counter({ period: PARAMETERS.period, timestamp }) + delta;
  if (lastStep === null || step > lastStep) return step;
  return step === lastStep ? 'used' : 'wrong';
}
