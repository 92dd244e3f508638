import { createHash } from 'node:crypto';
import { ISSUER_LENGTH_MAX, SUBJECT_TOKEN_LENGTH_MAX } from '@latchkey/contract/trusted-issuer';
import { DomainError } from '@latchkey/kit/errors/errors';
import { isText } from '@latchkey/kit/validation/text';
import * as jose from 'jose';
import type { IdentityContext } from '../context.ts';
import { errors } from '../proto-errors.ts';
import { lookupHash, toClaimTexts } from './claim-texts.ts';
import type { TrustedIssuerRow } from './trusted-issuer.store.ts';

/** Algorithms with a public key. Those with a shared secret are rejected. */
export const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
];

/** Oldest token that is accepted, by its `iat`. */
const AGE_MAX_S = 600;
/** An issuer's clock may be ahead by this. */
const AHEAD_MAX_S = 60;
const SUBJECT_LENGTH_MAX = 1_024;
/** Most audiences and claims of a token: each pair of them is looked up. */
const AUDIENCES_MAX = 4;
const CLAIMS_MAX = 200;

export interface VerifiedToken {
  readonly subject: string;
  /** Hash of the key and the signed part. Without the signature, as that has several encodings. */
  readonly tokenHash: Buffer;
  readonly expiresAt: Date;
}

/** Throws `token_malformed` for text that is not a JWT with the claims that are needed. */
export function readUnverified(token: string) {
  const payload = token.length <= SUBJECT_TOKEN_LENGTH_MAX ? decode(token) : {};
  const { iss, aud, sub, iat, exp } = payload;
  const audiences = [aud].flat().filter((one) => typeof one === 'string');
  const claims = toClaimTexts(payload);
  const isComplete =
    isText(iss, ISSUER_LENGTH_MAX) && isText(sub, SUBJECT_LENGTH_MAX) && Number.isFinite(iat) && Number.isFinite(exp);
  const isSized = audiences.length > 0 && audiences.length <= AUDIENCES_MAX && claims.length <= CLAIMS_MAX;
  if (!isComplete || !isSized) throw errors.token_malformed();
  const lookupHashes = audiences.flatMap((audience) => claims.map((claim) => lookupHash(iss, audience, claim)));
  return { audiences, claims, lookupHashes };
}

/**
 * Verifies a token against a trusted issuer: signature, issuer, audience, claims and times.
 * @returns `token_expired` or `trusted_issuer_unavailable`; `token_not_accepted` for a token that
 *   this issuer did not sign, or of other claims
 */
export async function verifyToken(
  { issuerKeys, clock, logger }: Pick<IdentityContext, 'issuerKeys' | 'clock' | 'logger'>,
  token: string,
  trusted: TrustedIssuerRow,
): Promise<VerifiedToken | DomainError> {
  const { issuer, audience } = trusted;
  const now = clock();
  const times = { currentDate: now, maxTokenAge: AGE_MAX_S, clockTolerance: AHEAD_MAX_S };
  const options = { issuer, audience, algorithms: ALGORITHMS, requiredClaims: ['exp', 'iat', 'sub'], ...times };
  const keys = trusted.jwks === null ? issuerKeys(issuer) : jose.createLocalJWKSet(JSON.parse(trusted.jwks));
  try {
    const { payload, key } = await jose.jwtVerify(token, keys, options);
    const { sub = '', iat = 0, exp = 0 } = payload;
    const claims = new Set(toClaimTexts(payload));
    if (!trusted.claims.every((claim) => claims.has(claim))) return errors.token_not_accepted();
    // The library applies the tolerance to age and expiry too: here only clocks ahead get it.
    const nowS = now.getTime() / 1_000;
    if (exp <= nowS || iat < nowS - AGE_MAX_S) return errors.token_expired();
    const endS = Math.min(exp, iat + AGE_MAX_S) + AHEAD_MAX_S;
    return { subject: sub, tokenHash: await hashToken(token, key), expiresAt: new Date(endS * 1_000) };
  } catch (err) {
    if (err instanceof DomainError) return err;
    // Keys of an issuer may also be such that they cannot be imported.
    const { JOSEError, JWTExpired, JWTClaimValidationFailed } = jose.errors;
    const cause = err instanceof JOSEError ? err.code : (err as Error).name;
    logger.info({ trustedIssuerId: trusted.id, cause }, 'token of a trusted issuer rejected');
    const isTime = err instanceof JWTClaimValidationFailed && ['iat', 'nbf'].includes(err.claim);
    return err instanceof JWTExpired || isTime ? errors.token_expired() : errors.token_not_accepted();
  }
}

async function hashToken(token: string, key: Parameters<typeof jose.exportJWK>[0]): Promise<Buffer> {
  const thumbprint = await jose.calculateJwkThumbprint(await jose.exportJWK(key));
  return createHash('sha256')
    .update(`${thumbprint}.${token.slice(0, token.lastIndexOf('.'))}`)
    .digest();
}

function decode(token: string): jose.JWTPayload {
  try {
    return jose.decodeJwt(token);
  } catch {
    return {};
  }
}
