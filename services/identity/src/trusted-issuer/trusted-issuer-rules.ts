import { createPublicKey, type JsonWebKey } from 'node:crypto';
import {
  AUDIENCE_LENGTH_MAX,
  CLAIMS_RULE,
  EXCHANGED_KEY_LIFETIME_S,
  ISSUER_LENGTH_MAX,
  isTrustedClaims,
  PASTED_KEYS_MAX,
  type TrustedClaims,
} from '@latchkey/contract/trusted-issuer';
import type { DomainError } from '@latchkey/kit/errors/errors';
import { isText } from '@latchkey/kit/validation/text';
import type { CreateTrustedIssuerRequest } from '@latchkey/proto/latchkey/identity/v1/trusted_issuer_pb';
import { z } from 'zod';
import { isEndpoint } from '../oidc/issuer-settings.ts';
import { errors } from '../proto-errors.ts';
import { lookupHash, toClaimTexts } from './claim-texts.ts';
import { ALGORITHMS } from './subject-token.ts';

/** Type, curve and algorithm of usable keys. */
const USABLE_KEY = /^(?:RSA \S+ [RP]S|EC P-256 ES256|EC P-384 ES384|EC P-521 ES512|OKP Ed25519 Ed)/;

const text = z.string().optional();

/** Private keys have `d`: they must not be stored. Its import checks the rest of a key. */
const publicKey = z.object({
  ...{ kty: z.enum(['RSA', 'EC', 'OKP']), d: z.undefined().optional() },
  ...{ kid: text, n: text, e: text, x: text, y: text },
  crv: z.enum(['P-256', 'P-384', 'P-521', 'Ed25519']).optional(),
  ...{ alg: z.enum(ALGORITHMS).optional(), use: z.literal('sig').optional() },
});
const pastedKeys = z.object({ keys: z.array(publicKey).min(1).max(PASTED_KEYS_MAX) });

type Settings = Pick<CreateTrustedIssuerRequest, 'issuer' | 'audience' | 'claims' | 'jwks' | 'lifetimeSeconds'>;

export function parseTrustedIssuer(settings: Settings, internalHosts: ReadonlySet<string>) {
  const { issuer, audience, lifetimeSeconds } = settings;
  const claims = parseJson(settings.claims);
  const isIssuer = settings.jwks === undefined ? isIssuerUrl(issuer, internalHosts) : isText(issuer, ISSUER_LENGTH_MAX);
  if (!isIssuer) throw invalid('issuer', 'must be an https URL without query and fragment, or have its keys in jwks');
  if (!isText(audience, AUDIENCE_LENGTH_MAX))
    throw invalid('audience', `must be 1 to ${AUDIENCE_LENGTH_MAX.toLocaleString('en')} characters`);
  if (!isTrustedClaims(claims)) throw invalid('claims', CLAIMS_RULE);
  const { min, max } = EXCHANGED_KEY_LIFETIME_S;
  if (!(lifetimeSeconds >= min && lifetimeSeconds <= max)) throw invalid('lifetimeSeconds', `must be ${min} to ${max}`);
  return {
    issuer,
    audience,
    claims: toClaimTexts(claims),
    lookup_hash: lookupHash(issuer, audience, longest(claims)),
    jwks: settings.jwks === undefined ? null : parseKeys(settings.jwks),
    lifetime_seconds: lifetimeSeconds,
  };
}

/** The claim that fewest tokens probably have: a repository rather than an environment. */
function longest(claims: TrustedClaims): string {
  return toClaimTexts(claims).reduce((a, b) => (b.length > a.length ? b : a));
}

function parseKeys(text: string): string {
  const parsed = pastedKeys.safeParse(withoutEncryptionKeys(parseJson(text)));
  if (!parsed.success)
    throw invalid('jwks', `must be a JSON Web Key Set of 1 to ${PASTED_KEYS_MAX} public keys: RSA, EC or Ed25519`);
  if (!parsed.data.keys.every(isUsable)) throw invalid('jwks', 'must have valid keys');
  return JSON.stringify(parsed.data);
}

function isUsable(key: z.output<typeof publicKey>): boolean {
  try {
    createPublicKey({ key: key as object as JsonWebKey, format: 'jwk' });
  } catch {
    return false;
  }
  return key.alg === undefined || USABLE_KEY.test(`${key.kty} ${key.crv} ${key.alg}`);
}

/** Key sets of some issuers also have keys for encryption. */
function withoutEncryptionKeys(value: unknown): unknown {
  const { keys } = Object(value) as { readonly keys?: unknown };
  return Array.isArray(keys) ? { keys: keys.filter((key) => Object(key).use !== 'enc') } : value;
}

function isIssuerUrl(text: string, internalHosts: ReadonlySet<string>): boolean {
  if (text.length > ISSUER_LENGTH_MAX || !isEndpoint(text)) return false;
  const { protocol, host } = new URL(text);
  // The parser drops spaces and empty queries, with which no `iss` is equal.
  return !/[\s?#]/.test(text) && (protocol === 'https:' || internalHosts.has(host));
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function invalid(path: string, message: string): DomainError {
  return errors.trusted_issuer_settings_invalid().withDetails({ path, message });
}
