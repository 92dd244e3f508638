import { createIssuer, type Issuer, type IssuerOptions } from './issuer.ts';
import { createIssuerFetch } from './issuer-fetch.ts';
import type { IssuerSettings } from './issuer-settings.ts';

/** Opens all issuers that are configured, by name. They share what bounds calls. */
export function createIssuers(
  settings: readonly IssuerSettings[],
  options: Omit<IssuerOptions, 'fetch'>,
): ReadonlyMap<string, Issuer> {
  const fetch = createIssuerFetch();
  return new Map(settings.map((issuer) => [issuer.name, createIssuer(issuer, { ...options, fetch })]));
}
