import { createIssuer, type Issuer, type IssuerOptions } from './issuer.ts';
import { createIssuerFetch } from './issuer-fetch.ts';
import type { IssuerSettings } from './issuer-settings.ts';

/** Calls to all issuers under way in one process. */
const CALLS_MAX = 64;

/**
 * Opens all issuers that are configured, by name. Each has an equal part of the calls that a process makes, so that one
 * that does not answer takes none from the others.
 */
export function createIssuers(
  settings: readonly IssuerSettings[],
  options: Omit<IssuerOptions, 'fetch'>,
): ReadonlyMap<string, Issuer> {
  const callsMax = Math.max(1, Math.floor(CALLS_MAX / settings.length));
  return new Map(
    settings.map((issuer) => [issuer.name, createIssuer(issuer, { ...options, fetch: createIssuerFetch(callsMax) })]),
  );
}
