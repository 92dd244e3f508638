/** Most trusted issuers of an account. */
export const TRUSTED_ISSUERS_MAX = 20;

/** Lifetime of the keys of a trusted issuer, in seconds. */
export const EXCHANGED_KEY_LIFETIME_S = { min: 60, max: 900 } as const;

/** Longest `iss`; longest `aud`. */
export const ISSUER_LENGTH_MAX = 2_048;
export const AUDIENCE_LENGTH_MAX = 1_024;

/** Most keys of a pasted JSON Web Key Set. */
export const PASTED_KEYS_MAX = 20;

/** Longest token that is exchanged. */
export const SUBJECT_TOKEN_LENGTH_MAX = 16_384;

/** Form values of a token exchange (RFC 8693, 2.1 and 3). */
export const TOKEN_EXCHANGE_GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange';
export const TOKEN_TYPES = {
  accessToken: 'urn:ietf:params:oauth:token-type:access_token',
  idToken: 'urn:ietf:params:oauth:token-type:id_token',
  jwt: 'urn:ietf:params:oauth:token-type:jwt',
} as const;

const CLAIMS_MAX = 20;
const CLAIM_NAME_LENGTH_MAX = 128;
const CLAIM_VALUE_LENGTH_MAX = 1_024;

/** Exact values of claims by name. */
export type TrustedClaims = Readonly<Record<string, string | number | boolean>>;

export const CLAIMS_RULE =
  `must be 1 to ${CLAIMS_MAX} names of up to ${CLAIM_NAME_LENGTH_MAX} characters, one of them neither iss nor aud, ` +
  `with texts of up to ${CLAIM_VALUE_LENGTH_MAX.toLocaleString('en')} characters, whole numbers or booleans`;

/** True if the value obeys {@link CLAIMS_RULE}. */
export function isTrustedClaims(value: unknown): value is TrustedClaims {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const entries = Object.entries(value);
  const isSized = entries.length > 0 && entries.length <= CLAIMS_MAX;
  return isSized && entries.every(isTrustedClaim) && entries.some(([name]) => name !== 'iss' && name !== 'aud');
}

function isTrustedClaim([name, value]: readonly [string, unknown]): boolean {
  if (name === '' || name.length > CLAIM_NAME_LENGTH_MAX) return false;
  if (typeof value === 'string') return value !== '' && value.length <= CLAIM_VALUE_LENGTH_MAX;
  return typeof value === 'boolean' || Number.isSafeInteger(value);
}
