import { hash } from 'node:crypto';
import type { TrustedClaims } from '@latchkey/contract/trusted-issuer';

/** Claims that can be compared, each as JSON: equal only for the same name, type and value. */
export function toClaimTexts(claims: Readonly<Record<string, unknown>>): string[] {
  const comparable = Object.entries(claims).filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value));
  return comparable.map((claim) => JSON.stringify(claim));
}

export function fromClaimTexts(texts: readonly string[]): TrustedClaims {
  return Object.fromEntries(texts.map((text) => JSON.parse(text)));
}

/** Hash by which tokens find the trusted issuers that name one of their claims. */
export function lookupHash(issuer: string, audience: string, claimText: string): Buffer {
  return hash('sha256', JSON.stringify([issuer, audience, claimText]), 'buffer');
}
