import { timestampMs } from '@bufbuild/protobuf/wkt';
import { PRINCIPAL_AGE_MS_MAX } from '@latchkey/contract/principal-age';
import { PrincipalKind, type Principal as PrincipalMessage } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { LRUCache } from 'lru-cache';
import type { Clients } from '../clients.ts';
import type { Epoch } from '../rate-limit/rate-limiter.ts';
import { credentialDigest, type GivenCredential, type Principal } from './credential.ts';

/** With the epoch before identity read the credential. */
interface CachedPrincipal extends Epoch {
  readonly principal: Principal;
  readonly clientIp: string;
}

const PRINCIPALS_MAX = 10_000;

export type Authenticator = ReturnType<typeof createAuthenticator>;

export function createAuthenticator({ authentication }: Pick<Clients, 'authentication'>) {
  const cache = new LRUCache<string, CachedPrincipal>({ max: PRINCIPALS_MAX, ttl: PRINCIPAL_AGE_MS_MAX, ttlResolution: 0 });
  return {
    /** The cached principal of a credential and address. The caller checks its epoch in Redis. */
    recall(credential: GivenCredential, clientIp: string): CachedPrincipal | undefined {
      const cached = cache.get(credentialDigest(credential));
      if (!cached || cached.clientIp !== clientIp || cached.principal.expiresAtMs <= Date.now()) return undefined;
      return cached;
    },
    /** Asks identity. Throws ConnectError with identity's reason. */
    async authenticate(credential: GivenCredential, clientIp: string, userAgent: string): Promise<Principal> {
      // The age counts from before the call.
      const start = performance.now();
      const { kind, text: value } = credential;
      const given = { case: kind === 'key' ? ('apiKey' as const) : ('sessionToken' as const), value };
      const { epochKey, epoch, ...found } = await authentication.authenticate({ credential: given, clientIp, userAgent });
      const principal = toPrincipal(found.principal);
      if (epochKey !== '' && epoch !== '')
        cache.set(credentialDigest(credential), { principal, clientIp, epochKey, epoch }, { start });
      return principal;
    },
    /** Clears the cache: after an outage, Redis may have older epochs than before. */
    forgetAll: () => cache.clear(),
  };
}

function toPrincipal(message: PrincipalMessage | undefined): Principal {
  if (!message) throw new Error('identity returned no principal');
  const { accountId, username, credentialId, allApplications, csrfToken } = message;
  return {
    ...{ accountId, username, credentialId, allApplications, csrfToken },
    kind: message.kind === PrincipalKind.SESSION ? 'session' : 'key',
    scopes: new Set(message.scopes),
    applicationIds: new Set(message.applicationIds),
    expiresAtMs: message.expiresAt ? timestampMs(message.expiresAt) : Number.POSITIVE_INFINITY,
  };
}
