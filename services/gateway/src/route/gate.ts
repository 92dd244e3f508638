import type { CallOptions } from '@connectrpc/connect';
import { networkOf } from '@latchkey/kit/http/client-ip';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Authenticator, GivenCredential } from '../authentication/authenticator.ts';
import { readCredential } from '../authentication/credential.ts';
import { checkCsrfToken, checkOrigin, isStateChanging } from '../authentication/csrf.ts';
import { hasScope, type Principal } from '../authentication/principal.ts';
import { callOptionsFor } from '../clients.ts';
import { errors } from '../errors.ts';
import { clientIpOf } from '../limit/client-ip.ts';
import { denial, setLimitHeaders } from '../limit/headers.ts';
import { type Standing, tighter } from '../limit/limit.ts';
import type { Count, Limiter } from '../limit/limiter.ts';
import type { Limits } from '../limit/limits.ts';
import type { Route, RouteLimit } from './route.ts';

/** What is known of a request that was let in. */
export interface Entrance {
  readonly principal: Principal | undefined;
  readonly call: CallOptions;
  readonly clientIp: string;
  /** The tightest limit. */
  readonly standing: Standing;
}

interface Caller {
  readonly principal: Principal | undefined;
  readonly standing: Standing;
}

/** An event to take back if its request fails, as long as the window it was counted in lasts: the next window never counted it. */
interface Refundable {
  readonly count: Count;
  /** Time of `performance.now()`. */
  readonly windowEndsAt: number;
}

/** What the gate works with. */
export interface GateOptions {
  readonly authenticator: Authenticator;
  readonly limiter: Limiter;
  readonly limits: Limits;
  /** Origin of PUBLIC_URL. */
  readonly publicOrigin: string;
}

/**
 * Lets requests in, in the order of decisions 2: limit per address, authentication, limit per principal, origin, limit of the route, kind of credential,
 * CSRF token, scope. It runs before the body is read. The origin comes before the limit of the route, so that no page of another origin spends what its
 * visitor has of it.
 */
export class Gate {
  readonly #options: GateOptions;
  readonly #refundable = new WeakMap<FastifyRequest, Refundable>();

  constructor(options: GateOptions) {
    this.#options = options;
  }

  /** Counts a request that no route takes, and refuses it past the limit per address. */
  async count(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const standing = await this.#options.limiter.hit(this.#ipCount(clientIpOf(request)));
    setLimitHeaders(reply, standing);
    if (!standing.allowed) throw denial(standing);
  }

  /** Lets a request for a route in, or throws why not. */
  async enter(request: FastifyRequest, reply: FastifyReply, route: Route): Promise<Entrance> {
    const clientIp = clientIpOf(request);
    const caller = await this.#identify(request, route, clientIp, callOptionsFor(request.id));
    let { standing } = caller;
    if (!standing.allowed) throw denial(standing);
    const { principal } = caller;
    setLimitHeaders(reply, standing);
    this.#checkComingFrom(request, route, principal);
    if (route.limit) standing = tighter(await this.#countRoute(request, route.limit, clientIp, principal), standing);
    setLimitHeaders(reply, standing);
    this.#authorize(request, route, principal);
    return { principal, call: callOptionsFor(request.id, { principal, clientIp }), clientIp, standing };
  }

  /** Takes back what a failed request must not count. */
  async refund(request: FastifyRequest): Promise<void> {
    const refundable = this.#refundable.get(request);
    if (!refundable) return;
    this.#refundable.delete(request);
    if (performance.now() < refundable.windowEndsAt) await this.#options.limiter.refund(refundable.count);
  }

  async #identify(request: FastifyRequest, route: Route, clientIp: string, call: CallOptions): Promise<Caller> {
    const { limiter, limits, authenticator } = this.#options;
    const credential = route.access === 'public' ? undefined : readCredential(request.raw);
    const given = credential?.kind === 'key' || credential?.kind === 'session' ? credential : undefined;
    const recalled = given && authenticator.recall(given, clientIp);
    if (recalled) {
      const { epochKey, epoch, principal } = recalled;
      const count = { limit: limits.principal, subject: principal.credentialId };
      const admission = await limiter.admit(this.#ipCount(clientIp), { epochKey, epoch, count });
      if (!admission.first.allowed) return { principal: undefined, standing: admission.first };
      if (admission.recalled) return { principal, standing: tighter(admission.first, admission.recalled) };
      return this.#authenticate(given, clientIp, call, admission.first);
    }
    const standing = await limiter.hit(this.#ipCount(clientIp));
    if (!standing.allowed || credential === undefined) return { principal: undefined, standing };
    if (!given) {
      if (credential.kind === 'malformed_key') throw errors.api_key_malformed();
      throw route.access === 'session' ? errors.session_missing() : errors.credential_missing();
    }
    return this.#authenticate(given, clientIp, call, standing);
  }

  async #authenticate(given: GivenCredential, clientIp: string, call: CallOptions, first: Standing): Promise<Caller> {
    const { limiter, limits, authenticator } = this.#options;
    const principal = await authenticator.authenticate(given, clientIp, call);
    const standing = await limiter.hit({ limit: limits.principal, subject: principal.credentialId });
    return { principal, standing: tighter(first, standing) };
  }

  async #countRoute(
    request: FastifyRequest,
    { limit, per, successesOnly }: RouteLimit,
    clientIp: string,
    principal: Principal | undefined,
  ) {
    const subject = per === 'account' && principal ? principal.accountId : networkOf(clientIp);
    const count = { limit, subject };
    const standing = await this.#options.limiter.hit(count);
    if (successesOnly) this.#refundable.set(request, { count, windowEndsAt: performance.now() + standing.resetMs });
    if (!standing.allowed) throw denial(standing);
    return standing;
  }

  /** A key is no browser's to send, so where it comes from is nobody's concern. */
  #checkComingFrom(request: FastifyRequest, route: Route, principal: Principal | undefined): void {
    route.admit?.(request.raw);
    if (principal?.kind === 'key' || !isStateChanging(request.method)) return;
    checkOrigin(request.raw, this.#options.publicOrigin, request.protocol);
  }

  #authorize(request: FastifyRequest, route: Route, principal: Principal | undefined): void {
    if (!principal) return;
    if (route.access === 'session' && principal.kind !== 'session') throw errors.session_required();
    if (principal.kind === 'session' && isStateChanging(request.method)) checkCsrfToken(request.raw, principal);
    if (route.access !== 'session' && route.access !== 'public' && !hasScope(principal, route.access))
      throw errors.scope_missing();
  }

  #ipCount(clientIp: string): Count {
    return { limit: this.#options.limits.ip, subject: networkOf(clientIp) };
  }
}
