import type { BufferedCounts } from '@latchkey/kit/concurrency/buffered-counts';
import { networkOf } from '@latchkey/kit/http/client-ip';
import { parseId } from '@latchkey/kit/validation/id';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Authenticator } from '../authentication/authenticator.ts';
import { type GivenCredential, type Principal, readCredential, readUserAgent } from '../authentication/credential.ts';
import { checkCsrfToken, checkWebOrigin, isStateChanging } from '../authentication/csrf.ts';
import { errors } from '../errors.ts';
import type { Count, RateLimiter } from '../rate-limit/rate-limiter.ts';
import { type LimitState, limitReached, type RateLimits, setLimitHeaders, tighter } from '../rate-limit/rate-limits.ts';
import { currentRequest, type RequestContext } from '../request-context.ts';
import type { Route, RouteLimit } from './route.ts';

export interface GateOptions {
  readonly authenticator: Authenticator;
  readonly limiter: RateLimiter;
  readonly limits: RateLimits;
  readonly publicOrigin: string;
  /** Counts requests by the id of their management key. */
  readonly requests: BufferedCounts<'requests'>;
}

interface Identified {
  readonly principal: Principal | undefined;
  readonly limitState: LimitState;
}

/** Makes the checks 2 to 7 of `registerRoute`, before the body of a request is read. */
export class Gate {
  readonly #options: GateOptions;

  constructor(options: GateOptions) {
    this.#options = options;
  }

  /** Counts a request without a route. Throws `rate_limit_reached`. */
  async count(reply: FastifyReply): Promise<void> {
    const { clientIp } = currentRequest() as RequestContext;
    const state = await this.#options.limiter.hit(this.#ipCount(clientIp));
    setLimitHeaders(reply, state);
    if (!state.allowed) throw limitReached(state);
  }

  /** Sets the principal and the limit of the current request. */
  async admit(request: FastifyRequest, reply: FastifyReply, route: Route): Promise<void> {
    const context = currentRequest() as RequestContext;
    const { clientIp } = context;
    if (isPublicRead(route)) {
      context.limitState = await this.#countRead(request, reply, route.limit, clientIp);
      return;
    }
    const { principal, limitState: global } = await this.#identify(request, route, clientIp);
    if (!global.allowed) throw limitReached(global);
    context.principal = principal;
    if (principal?.kind === 'key') this.#options.requests.add(principal.credentialId, 'requests');
    setLimitHeaders(reply, global);
    route.checkHead?.(request.raw);
    if (principal?.kind !== 'key' && isStateChanging(request.method))
      checkWebOrigin(request.raw, this.#options.publicOrigin, request.protocol);
    context.limitState = route.limit ? tighter(await this.#countRoute(request, route.limit, context), global) : global;
    setLimitHeaders(reply, context.limitState);
    if (principal) authorize(request, route, principal);
  }

  /**
   * Takes a failed request out of a limit that counts successes alone, unless its window is over.
   */
  async refund(): Promise<void> {
    const { refundable } = currentRequest() ?? {};
    if (refundable && performance.now() < refundable.endsAt) await this.#options.limiter.refund(refundable.count);
  }

  async #identify(request: FastifyRequest, route: Route, clientIp: string): Promise<Identified> {
    const { limiter, limits, authenticator } = this.#options;
    const credential = route.access === 'public' ? undefined : readCredential(request.raw);
    const given = credential && 'text' in credential ? credential : undefined;
    const recalled = given && authenticator.recall(given, clientIp);
    if (recalled) {
      const { principal } = recalled;
      const count = { limit: limits.principal, subject: principal.credentialId };
      const [first, counted] = await limiter.hitBoth(this.#ipCount(clientIp), count, recalled);
      if (!first.allowed) return { principal: undefined, limitState: first };
      if (counted) return { principal, limitState: tighter(first, counted) };
      return this.#authenticate(given, request, clientIp, first);
    }
    const limitState = await limiter.hit(this.#ipCount(clientIp));
    if (!limitState.allowed || credential === undefined) return { principal: undefined, limitState };
    if (given) return this.#authenticate(given, request, clientIp, limitState);
    if (credential.kind === 'malformed_key') throw errors.api_key_malformed();
    throw route.access === 'session' ? errors.session_missing() : errors.credential_missing();
  }

  async #authenticate(given: GivenCredential, { raw }: FastifyRequest, clientIp: string, first: LimitState) {
    const { limiter, limits, authenticator } = this.#options;
    const principal = await authenticator.authenticate(given, clientIp, readUserAgent(raw));
    const limitState = await limiter.hit({ limit: limits.principal, subject: principal.credentialId });
    return { principal, limitState: tighter(first, limitState) };
  }

  async #countRoute(
    request: FastifyRequest,
    { limit, per, successesOnly }: RouteLimit,
    context: RequestContext,
  ): Promise<LimitState> {
    const count = { limit, subject: subjectOf(request, per, context.clientIp, context.principal) };
    const state = await this.#options.limiter.hit(count);
    if (successesOnly) context.refundable = { count, endsAt: performance.now() + state.resetMs };
    if (!state.allowed) throw limitReached(state);
    return state;
  }

  /** Counts a request for the limits of its network and its route. Throws `rate_limit_reached`. */
  async #countRead(
    request: FastifyRequest,
    reply: FastifyReply,
    { limit, per }: RouteLimit,
    clientIp: string,
  ): Promise<LimitState> {
    const count = { limit, subject: subjectOf(request, per, clientIp) };
    const [global, counted] = await this.#options.limiter.hitBoth(this.#ipCount(clientIp), count);
    if (!global.allowed || !counted) throw limitReached(global);
    setLimitHeaders(reply, global);
    if (!counted.allowed) throw limitReached(counted);
    const state = tighter(counted, global);
    setLimitHeaders(reply, state);
    return state;
  }

  #ipCount(clientIp: string): Count {
    return { limit: this.#options.limits.ip, subject: networkOf(clientIp) };
  }
}

function subjectOf(request: FastifyRequest, per: RouteLimit['per'], clientIp: string, principal?: Principal): string {
  const network = networkOf(clientIp);
  if (per === 'application') return `${applicationOf(request)} ${network}`;
  return per === 'account' ? (principal?.accountId ?? network) : network;
}

/** True for a route whose two limits nothing comes between: they are counted together. */
function isPublicRead(route: Route): route is Route & { readonly limit: RouteLimit } {
  const { access, method, limit, checkHead } = route;
  return access === 'public' && limit?.per === 'application' && !isStateChanging(method) && !checkHead;
}

/** The application in a path; one subject for all texts other than an id. */
function applicationOf({ params }: FastifyRequest): string {
  return parseId((params as { readonly applicationId?: string }).applicationId ?? '') ?? 'none';
}

function authorize({ method, raw }: FastifyRequest, { access }: Route, principal: Principal): void {
  if (access === 'session' && principal.kind !== 'session') throw errors.session_required();
  if (principal.kind === 'session' && isStateChanging(method)) checkCsrfToken(raw, principal);
  // A session has every scope of its account.
  if (principal.kind === 'key' && !principal.scopes.has(access)) throw errors.scope_missing();
}
