import { createPublicFetch } from '@latchkey/kit/http/public-fetch';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import { createLocalJWKSet, type JSONWebKeySet, type JWTVerifyGetKey, errors as joseErrors } from 'jose';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import type { IssuerOptions } from '../oidc/issuer.ts';
import { causeOf, createIssuerFetch, IssuerError } from '../oidc/issuer-http.ts';
import { isEndpoint } from '../oidc/issuer-settings.ts';
import { errors } from '../proto-errors.ts';

/** A key that the issuer withdrew is accepted for so long. */
const LIFETIME_MS = 5 * 60_000;
/** Shortest time between two requests to an issuer, also after a failure. */
const REFRESH_INTERVAL_MS = 30_000;
/** Issuers whose keys are cached, up to 256 KiB each. */
const ISSUERS_MAX = 100;
const CALLS_MAX = 32;

interface CachedKeys {
  /** Undefined until they were read once. */
  readonly keys?: ReturnType<typeof createLocalJWKSet>;
  readonly readAtMs: number;
  /** Time of the last request, which may have failed. */
  readonly triedAtMs: number;
}

type Options = IssuerOptions & { readonly internalHosts: ReadonlySet<string> };

const metadataSchema = z.object({ issuer: z.string(), jwks_uri: z.string().refine(isEndpoint) });

/**
 * Keys that an issuer publishes by OpenID Connect Discovery, cached. Concurrent calls share a
 * request, and an issuer is asked every 30 seconds at most, also for tokens without a known key.
 * Users choose issuers, so internal addresses are not connected to unless they are listed.
 *
 * The result throws `trusted_issuer_unavailable`.
 */
export function createIssuerKeys({ clock, logger, internalHosts, callTimeoutMs = DEADLINES_MS.issuer }: Options) {
  const call = createIssuerFetch(CALLS_MAX, createPublicFetch(internalHosts));
  const nowMs = () => clock().getTime();
  const getJson = async (url: string) => {
    const signal = AbortSignal.timeout(callTimeoutMs);
    const headers = { accept: 'application/json' };
    const response = await call(url, { method: 'GET', redirect: 'manual', body: undefined, headers, signal });
    if (response.status !== 200) throw new IssuerError(`the status is ${response.status}`);
    return response.json();
  };
  const cache = new LRUCache<string, CachedKeys>({
    max: ISSUERS_MAX,
    ignoreFetchAbort: true,
    fetchMethod: async (issuer, before) => {
      const triedAtMs = nowMs();
      try {
        const metadata = metadataSchema.safeParse(await getJson(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`));
        if (metadata.data?.issuer !== issuer) throw new IssuerError('the metadata is of another issuer');
        const keys = createLocalJWKSet((await getJson(metadata.data.jwks_uri)) as JSONWebKeySet);
        return { keys, readAtMs: nowMs(), triedAtMs };
      } catch (err) {
        logger.warn({ cause: causeOf(err) }, 'keys of a trusted issuer not read');
        return { readAtMs: 0, ...before, triedAtMs };
      }
    },
  });
  /** @param rejected keys without the one of a token */
  const read = async (issuer: string, rejected?: CachedKeys['keys']) => {
    const validIn = (cached?: CachedKeys) => (cached && cached.readAtMs + LIFETIME_MS > nowMs() ? cached.keys : undefined);
    const cached = cache.get(issuer);
    const known = validIn(cached);
    if (known && known !== rejected) return known;
    const isRecent = cached !== undefined && cached.triedAtMs + REFRESH_INTERVAL_MS > nowMs();
    const keys = validIn(await cache.forceFetch(issuer, { forceRefresh: !isRecent }));
    if (!keys) throw errors.trusted_issuer_unavailable();
    return keys;
  };
  return (issuer: string): JWTVerifyGetKey =>
    async (...token) => {
      const keys = await read(issuer);
      return keys(...token).catch(async (err: unknown) => {
        if (!(err instanceof joseErrors.JWKSNoMatchingKey)) throw err;
        return (await read(issuer, keys))(...token);
      });
    };
}
