import { LRUCache } from 'lru-cache';
import type { Principal } from './principal.ts';

/** An answer of identity that may be used again while its epoch stands. */
export interface CachedPrincipal {
  readonly principal: Principal;
  /** Redis key of the credential's epoch, and the value read before identity looked the credential up. */
  readonly epochKey: string;
  readonly epoch: string;
  readonly clientIp: string;
}

/** Longest time an answer is used again, in milliseconds; `authentication.proto` promises identity no more. */
export const PRINCIPAL_MAX_AGE_MS = 3_000;

const ENTRIES_MAX = 10_000;

/** Principals answered a moment ago, by the digest of their credential. */
export type PrincipalCache = LRUCache<string, CachedPrincipal>;

export function createPrincipalCache(): PrincipalCache {
  return new LRUCache({ max: ENTRIES_MAX, ttl: PRINCIPAL_MAX_AGE_MS, ttlResolution: 0 });
}
