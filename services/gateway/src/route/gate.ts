import { networkOf } from '@latchkey/kit/http/client-ip';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Authenticator, GivenCredential } from '../authentication/authenticator.ts';
import { readCredential } from '../authentication/credential.ts';
import { checkCsrfToken, checkOrigin, isStateChanging } from '../authentication/cross-site.ts';
import { hasScope, type Principal } from '../authentication/principal.ts';
import { errors } from '../errors.ts';
import type { Count, Limiter } from '../limit/limiter.ts';
import { type LimitState, type Limits, limitReached, setLimitHeaders, tighter } from '../limit/limits.ts';
import { currentRequest, type RequestContext } from '../request-context.ts';
import type { Route, RouteLimit } from './route.ts';

/** What is known of an admitted request. */
export interface Entrance {
  readonly principal: Principal | undefined;
  readonly clientIp: string;
  /** The tightest limit. */
  readonly limitState: LimitState;
}

/** An event to refund if its request fails, while its window lasts: the next window never counted it. */
interface Refundable {
  readonly count: Count;
  /** Time of `performance.now()`. */
  readonly windowEndsAt: number;
}

/** What the gate works with. */
export interface GateOptions {
  readonly authenticator: Pick<Authenticator, 'recall' | 'authenticate'>;
  readonly limiter: Pick<Limiter, 'admit' | 'hit' | 'refund'>;
  readonly limits: Limits;
  /** Origin of PUBLIC_URL. */
  readonly publicOrigin: string;
}

/**
 * Admits requests in the order of decisions 2, before their body is read: limit per address, authentication, limit per principal,
 * origin, limit of the route, kind of credential, CSRF token, scope. The origin comes before the limit of the route, so that no page
 * of another origin uses up its visitor's limit.
 */
export class Gate {
  readonly #options: GateOptions;
  readonly #refundable = new WeakMap<FastifyRequest, Refundable>();

  constructor(options: GateOptions) {
    this.#options = options;
  }

  /** Counts a request without a route, and rejects it beyond the limit per address. */
  async count(reply: FastifyReply): Promise<void> {
    const { clientIp } = currentRequest() as RequestContext;
    const state = await this.#options.limiter.hit(this.#ipCount(clientIp));
    setLimitHeaders(reply, state);
    if (!state.allowed) throw limitReached(state);
  }

  /** Admits a request to a route, or throws why not. */
  async enter(request: FastifyRequest, reply: FastifyReply, route: Route): Promise<Entrance> {
    const context = currentRequest() as RequestContext;
    const { clientIp } = context;
    const { principal, limitState: global } = await this.#identify(request, route, clientIp);
    if (!global.allowed) throw limitReached(global);
    context.principal = principal;
    setLimitHeaders(reply, global);
    route.admit?.(request.raw);
    if (principal?.kind !== 'key' && isStateChanging(request.method))
      checkOrigin(request.raw, this.#options.publicOrigin, request.protocol);
    const limitState = route.limit ? tighter(await this.#countRoute(request, route.limit, clientIp, principal), global) : global;
    setLimitHeaders(reply, limitState);
    if (principal) authorize(request, route, principal);
    return { principal, clientIp, limitState };
  }

  /** Refunds what a failed request must not count. */
  async refund(request: FastifyRequest): Promise<void> {
    const refundable = this.#refundable.get(request);
    if (!refundable) return;
    this.#refundable.delete(request);
    if (performance.now() < refundable.windowEndsAt) await this.#options.limiter.refund(refundable.count);
  }

  async #identify(request: FastifyRequest, route: Route, clientIp: string): Promise<Omit<Entrance, 'clientIp'>> {
    const { limiter, limits, authenticator } = this.#options;
    const credential = route.access === 'public' ? undefined : readCredential(request.raw);
    const given = credential?.kind === 'key' || credential?.kind === 'session' ? credential : undefined;
    const recalled = given && authenticator.recall(given, clientIp);
    if (recalled) {
      const { epochKey, epoch, principal } = recalled;
      const count = { limit: limits.principal, subject: principal.credentialId };
      const admission = await limiter.admit(this.#ipCount(clientIp), { epochKey, epoch, count });
      if (!admission.first.allowed) return { principal: undefined, limitState: admission.first };
      if (admission.recalled) return { principal, limitState: tighter(admission.first, admission.recalled) };
      return this.#authenticate(given, clientIp, admission.first);
    }
    const limitState = await limiter.hit(this.#ipCount(clientIp));
    if (!limitState.allowed || credential === undefined) return { principal: undefined, limitState };
    if (given) return this.#authenticate(given, clientIp, limitState);
    if (credential.kind === 'malformed_key') throw errors.api_key_malformed();
    throw route.access === 'session' ? errors.session_missing() : errors.credential_missing();
  }

  async #authenticate(given: GivenCredential, clientIp: string, first: LimitState) {
    const { limiter, limits, authenticator } = this.#options;
    const principal = await authenticator.authenticate(given, clientIp);
    const limitState = await limiter.hit({ limit: limits.principal, subject: principal.credentialId });
    return { principal, limitState: tighter(first, limitState) };
  }

  async #countRoute(
    request: FastifyRequest,
    { limit, per, successesOnly }: RouteLimit,
    clientIp: string,
    principal: Principal | undefined,
  ): Promise<LimitState> {
    const subject = per === 'account' && principal ? principal.accountId : networkOf(clientIp);
    const count = { limit, subject };
    const state = await this.#options.limiter.hit(count);
    if (successesOnly) this.#refundable.set(request, { count, windowEndsAt: performance.now() + state.resetMs });
    if (!state.allowed) throw limitReached(state);
    return state;
  }

  #ipCount(clientIp: string): Count {
    return { limit: this.#options.limits.ip, subject: networkOf(clientIp) };
  }
}

function authorize({ method, raw }: FastifyRequest, { access }: Route, principal: Principal): void {
  if (access === 'session' && principal.kind !== 'session') throw errors.session_required();
  if (principal.kind === 'session' && isStateChanging(method)) checkCsrfToken(raw, principal);
  if (access !== 'session' && access !== 'public' && !hasScope(principal, access)) throw errors.scope_missing();
}
