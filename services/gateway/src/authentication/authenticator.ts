import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { CallOptions } from '@connectrpc/connect';
import {
  type AuthenticateResponse,
  PrincipalKind,
  type Principal as PrincipalMessage,
} from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import type { Clients } from '../clients.ts';
import { type Credential, credentialDigest } from './credential.ts';
import type { Principal } from './principal.ts';
import { type CachedPrincipal, createPrincipalCache, type PrincipalCache } from './principal-cache.ts';

/** A credential that some text was given for. */
export type GivenCredential = Extract<Credential, { kind: 'key' | 'session' }>;

/** Asks identity who stands behind a credential, and remembers the answer for a moment. */
export class Authenticator {
  readonly #cache: PrincipalCache = createPrincipalCache();
  readonly #clients: Pick<Clients, 'authentication'>;

  constructor(clients: Pick<Clients, 'authentication'>) {
    this.#clients = clients;
  }

  /**
   * What identity answered a moment ago for this credential from this address. It holds only if its epoch still stands in Redis, which
   * the caller sees to.
   */
  recall(credential: GivenCredential, clientIp: string): CachedPrincipal | undefined {
    const cached = this.#cache.get(credentialDigest(credential.kind, credential.text));
    if (!cached || cached.clientIp !== clientIp || cached.principal.expiresAtMs <= Date.now()) return undefined;
    return cached;
  }

  /**
   * Asks identity. The answer is remembered from before the question was asked, so that its age is never underrated.
   *
   * @throws ConnectError with identity's reason
   */
  async authenticate(credential: GivenCredential, clientIp: string, call: CallOptions): Promise<Principal> {
    const digest = credentialDigest(credential.kind, credential.text);
    const askedAt = performance.now();
    const answer = await this.#clients.authentication.authenticate(
      { credential: { case: credential.kind === 'key' ? 'apiKey' : 'sessionToken', value: credential.text }, clientIp },
      call,
    );
    const principal = toPrincipal(answer.principal);
    this.#remember(digest, answer, { principal, clientIp, askedAt });
    return principal;
  }

  /** Forgets all: what Redis holds after it was away may be older than what it answered before. */
  forgetAll(): void {
    this.#cache.clear();
  }

  #remember(
    digest: string,
    answer: AuthenticateResponse,
    known: { principal: Principal; clientIp: string; askedAt: number },
  ): void {
    const { epochKey, epoch } = answer;
    if (epochKey === '' || epoch === '') return;
    const { principal, clientIp, askedAt } = known;
    this.#cache.set(digest, { principal, clientIp, epochKey, epoch }, { start: askedAt });
  }
}

function toPrincipal(message: PrincipalMessage | undefined): Principal {
  if (!message) throw new Error('identity answered no principal');
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
