import { createPublicFetch } from '@latchkey/kit/http/public-fetch';
import type { Logger } from '@latchkey/kit/log/logger';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import { createLocalJWKSet, type JSONWebKeySet } from 'jose';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { createIssuerFetch, IssuerError } from '../oidc/issuer-http.ts';
import { isEndpoint } from '../oidc/issuer-settings.ts';
import { errors } from '../proto-errors.ts';

export type IssuerKeys = ReturnType<typeof createIssuerKeys>;
export type KeySet = ReturnType<typeof createLocalJWKSet>;

/** A key that the issuer withdrew is accepted for so long. */
const LIFETIME_MS = 5 * 60_000;
/** Shortest time between two requests to an issuer, also after a failure. */
const REFRESH_INTERVAL_MS = 30_000;
/** Issuers whose keys are cached, up to 256 KiB each. */
const ISSUERS_MAX = 100;
/** Concurrent calls to all issuers. */
const CALLS_MAX = 32;

interface CachedIssuer {
  keys: KeySet | undefined;
  fetchedAtMs: number;
  triedAtMs: number;
  pending: Promise<KeySet | undefined> | undefined;
}

interface IssuerKeysOptions {
  readonly clock: () => Date;
  readonly logger: Logger;
  readonly internalHosts: ReadonlySet<string>;
  readonly callTimeoutMs?: number | undefined;
}

/**
 * Keys that issuers publish by OpenID Connect Discovery, cached. Concurrent calls share a request,
 * and an issuer is asked every 30 seconds at most. Users choose issuers, so internal addresses are
 * not connected to unless they are listed.
 */
export function createIssuerKeys({ clock, logger, internalHosts, callTimeoutMs = DEADLINES_MS.issuer }: IssuerKeysOptions) {
  const issuers = new LRUCache<string, CachedIssuer>({ max: ISSUERS_MAX });
  const call = createIssuerFetch(CALLS_MAX, createPublicFetch(internalHosts));

  const getJson = async (url: string) => {
    const signal = AbortSignal.timeout(callTimeoutMs);
    const headers = { accept: 'application/json' };
    const response = await call(url, { method: 'GET', redirect: 'manual', body: undefined, headers, signal });
    if (response.status !== 200) throw new IssuerError(`the status is ${response.status}`);
    return response.json();
  };
  const fetchKeys = async (issuer: string): Promise<KeySet> => {
    const metadata = metadataSchema.safeParse(await getJson(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`));
    if (metadata.data?.issuer !== issuer) throw new IssuerError('the metadata is of another issuer');
    return createLocalJWKSet((await getJson(metadata.data.jwks_uri)) as JSONWebKeySet);
  };
  const refresh = (issuer: string, cached: CachedIssuer) => {
    cached.triedAtMs = clock().getTime();
    cached.pending ??= fetchKeys(issuer)
      .then(
        (keys) => Object.assign(cached, { keys, fetchedAtMs: clock().getTime() }).keys,
        (err: unknown) => {
          logger.warn({ cause: causeOf(err) }, 'keys of a trusted issuer not read');
          return undefined;
        },
      )
      .finally(() => {
        cached.pending = undefined;
      });
    return cached.pending;
  };
  return {
    /**
     * The keys of an issuer.
     * @param rejected keys without the one of a token: newer ones are read if the last request was
     *   30 seconds ago
     * @throws `trusted_issuer_unavailable`
     */
    async get(issuer: string, rejected?: KeySet): Promise<KeySet> {
      const cached = issuers.get(issuer) ?? { keys: undefined, fetchedAtMs: 0, triedAtMs: 0, pending: undefined };
      issuers.set(issuer, cached);
      const now = clock().getTime();
      const known = cached.fetchedAtMs + LIFETIME_MS > now ? cached.keys : undefined;
      if (known && known !== rejected) return known;
      const isRecent = cached.triedAtMs + REFRESH_INTERVAL_MS > now;
      const found = isRecent ? await cached.pending : await refresh(issuer, cached);
      const keys = found ?? known;
      if (!keys) throw errors.trusted_issuer_unavailable();
      return keys;
    },
  };
}

const metadataSchema = z.object({ issuer: z.string(), jwks_uri: z.string().refine(isEndpoint) });

/** A word for the log that no issuer chose. */
function causeOf(err: unknown): string {
  if (err instanceof IssuerError) return err.message;
  const cause = err instanceof Error && err.cause instanceof Error ? err.cause : err;
  return cause instanceof Error ? cause.name : 'unknown';
}
