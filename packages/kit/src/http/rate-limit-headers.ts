import type { DomainError } from '../errors/errors.ts';

/** Value of the `RateLimit-Policy` header (draft-ietf-httpapi-ratelimit-headers). */
export function rateLimitPolicy(policy: string, limit: number | string, windowSeconds: number | string): string {
  return `"${policy}";q=${limit};w=${windowSeconds}`;
}

export function rateLimitState(policy: string, remaining: number | string, resetSeconds: number | string): string {
  return `"${policy}";r=${remaining};t=${resetSeconds}`;
}

/** Headers of a 429, from the metadata of its error: the limit may be another service's. */
export function rateLimitHeaders({ metadata }: DomainError): Record<string, string> {
  const { policy = 'limit', limit = '0', windowSeconds = '0', remaining = '0', retryAfterSeconds = '1' } = metadata;
  return {
    'retry-after': retryAfterSeconds,
    'ratelimit-policy': rateLimitPolicy(policy, limit, windowSeconds),
    ratelimit: rateLimitState(policy, remaining, retryAfterSeconds),
  };
}
