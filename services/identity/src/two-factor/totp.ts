import { Secret, TOTP } from 'otpauth';

/** The parameters that every authenticator app knows (decisions 4). */
const PARAMETERS = { algorithm: 'SHA1', digits: 6, period: 30 } as const;
/** Steps that the owner's clock may be off, either way. */
const DRIFT_STEPS = 1;
/** 160 bits, as RFC 4226, 4 recommends. */
const SECRET_BYTES = 20;
const ISSUER = 'Latchkey';

/** A new secret in base32. */
export function createTotpSecret(random: (bytes: number) => Buffer): string {
  return new Secret({ buffer: Uint8Array.from(random(SECRET_BYTES)).buffer }).base32;
}

/** The secret as authenticator apps read it from a QR code. */
export function otpauthUrl(secret: string, email: string): string {
  return new TOTP({ ...PARAMETERS, issuer: ISSUER, label: email, secret }).toString();
}

/** The time step whose code may be taken now; or that it is the code that was taken last, or none. */
export type JudgedCode = { readonly step: number } | 'taken' | 'wrong';

/**
 * Says of a code whether it may be taken. That of a step no later than `lastStep` may not: its code, or a later one, was taken before (RFC 6238, 5.2).
 *
 * @param digits six ASCII digits
 */
export function judgeCode(secret: string, digits: string, now: Date, lastStep: number | null): JudgedCode {
  const timestamp = now.getTime();
  const delta = TOTP.validate({
    ...PARAMETERS,
    secret: Secret.fromBase32(secret),
    token: digits,
    timestamp,
    window: DRIFT_STEPS,
  });
  if (delta === null) return 'wrong';
  const step = TOTP.counter({ period: PARAMETERS.period, timestamp }) + delta;
  if (lastStep === null || step > lastStep) return { step };
  return step === lastStep ? 'taken' : 'wrong';
}
