import { timestampDate } from '@bufbuild/protobuf/wkt';
import { PrincipalKind, type Principal as PrincipalMessage } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { LRUCache } from 'lru-cache';
import type { Clients } from '../clients.ts';
import { type Credential, credentialDigest } from './credential.ts';
import type { Principal } from './principal.ts';

/** A credential with a text to verify. */
export type GivenCredential = Extract<Credential, { kind: 'key' | 'session' }>;

/** A response of identity that may be used again while its epoch stands. */
export interface CachedPrincipal {
  readonly principal: Principal;
  /** Redis key of the credential's epoch, and the value from before identity read the credential. */
  readonly epochKey: string;
  readonly epoch: string;
  readonly clientIp: string;
}

/** Longest time that a response is used again, in milliseconds, as `authentication.proto` promises. */
const PRINCIPAL_AGE_MS_MAX = 3_000;
const PRINCIPALS_MAX = 10_000;

/** Authenticates credentials with identity, and caches its responses for a moment. */
export class Authenticator {
  readonly #cache = new LRUCache<string, CachedPrincipal>({
    max: PRINCIPALS_MAX,
    ttl: PRINCIPAL_AGE_MS_MAX,
    ttlResolution: 0,
  });
  readonly #clients: Pick<Clients, 'authentication'>;

  constructor(clients: Pick<Clients, 'authentication'>) {
    this.#clients = clients;
  }

  /** The cached response for this credential from this address. It is valid only if Redis still has its epoch, which the caller checks. */
  recall(credential: GivenCredential, clientIp: string): CachedPrincipal | undefined {
    const cached = this.#cache.get(credentialDigest(credential));
    if (!cached || cached.clientIp !== clientIp || cached.principal.expiresAtMs <= Date.now()) return undefined;
    return cached;
  }

  /** Asks identity. The cache counts the age from before the call. Throws ConnectError with identity's reason. */
  async authenticate(credential: GivenCredential, clientIp: string): Promise<Principal> {
    const start = performance.now();
    const response = await this.#clients.authentication.authenticate({
      credential: { case: credential.kind === 'key' ? 'apiKey' : 'sessionToken', value: credential.text },
      clientIp,
    });
    const principal = toPrincipal(response.principal);
    const { epochKey, epoch } = response;
    if (epochKey !== '' && epoch !== '')
      this.#cache.set(credentialDigest(credential), { principal, clientIp, epochKey, epoch }, { start });
    return principal;
  }

  /** Clears the cache: after an outage, Redis may have older epochs than it returned before. */
  forgetAll(): void {
    this.#cache.clear();
  }
}

function toPrincipal(message: PrincipalMessage | undefined): Principal {
  if (!message) throw new Error('identity returned no principal');
  return {
    kind: message.kind === PrincipalKind.SESSION ? 'session' : 'key',
    accountId: message.accountId,
    username: message.username,
    credentialId: message.credentialId,
    scopes: new Set(message.scopes),
    allApplications: message.allApplications,
    applicationIds: new Set(message.applicationIds),
    expiresAtMs: message.expiresAt ? timestampDate(message.expiresAt).getTime() : Number.POSITIVE_INFINITY,
    csrfToken: message.csrfToken,
  };
}
