import type { DomainError } from '../errors/errors.ts';

/**
 * Headers of a rate-limited response (decisions 3): `Retry-After`, and those of
 * draft-ietf-httpapi-ratelimit-headers, from the metadata of the error, since the limit may be another service's.
 */
export function denialHeaders({ metadata }: DomainError): Record<string, string> {
  const { policy = 'limit', limit = '0', windowSeconds = '0', remaining = '0', retryAfterSeconds = '1' } = metadata;
  return {
    'retry-after': retryAfterSeconds,
    'ratelimit-policy': `"${policy}";q=${limit};w=${windowSeconds}`,
    ratelimit: `"${policy}";r=${remaining};t=${retryAfterSeconds}`,
  };
}
