import type { BufferedCounts } from '@latchkey/kit/concurrency/buffered-counts';
import { networkOf } from '@latchkey/kit/http/client-ip';
import { parseId } from '@latchkey/kit/validation/id';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Authenticator } from '../authentication/authenticator.ts';
import { type Credential, type Principal, readCredential, readUserAgent } from '../authentication/credential.ts';
import { checkCsrfToken, checkWebOrigin, isStateChanging } from '../authentication/csrf.ts';
import { errors } from '../errors.ts';
import type { Count, RateLimiter } from '../rate-limit/rate-limiter.ts';
import { limitReached, type RateLimits, setLimitHeaders, tighter } from '../rate-limit/rate-limits.ts';
import { currentRequest, type RequestContext } from '../request-context.ts';
import type { Route, RouteLimit } from './route.ts';

export interface GateOptions {
  readonly authenticator: Authenticator;
  readonly limiter: RateLimiter;
  readonly limits: RateLimits;
  readonly publicOrigin: string;
  readonly requests: BufferedCounts<'requests'>;
}

export type Gate = ReturnType<typeof createGate>;

/** Makes the checks 2 to 7 of `registerRoute`, before the body of a request is read. */
export function createGate({ authenticator, limiter, limits, publicOrigin, requests }: GateOptions) {
  const ipCount = (clientIp: string): Count => ({ limit: limits.ip, subject: networkOf(clientIp) });
  const principalCount = ({ credentialId }: Principal): Count => ({ limit: limits.principal, subject: credentialId });

  async function authenticate(credential: Credential, { raw }: FastifyRequest, { access }: Route, clientIp: string) {
    if (credential.kind === 'malformed_key') throw errors.api_key_malformed();
    if (!('text' in credential)) throw access === 'session' ? errors.session_missing() : errors.credential_missing();
    const principal = await authenticator.authenticate(credential, clientIp, readUserAgent(raw));
    return { principal, state: await limiter.hit(principalCount(principal)) };
  }

  return {
    /** Counts a request without a route. Throws `rate_limit_reached`. */
    async count(reply: FastifyReply): Promise<void> {
      const { clientIp } = currentRequest() as RequestContext;
      const state = await limiter.hit(ipCount(clientIp));
      setLimitHeaders(reply, state);
      if (!state.allowed) throw limitReached(state);
    },

    /** Sets the principal and the limit of the current request. */
    async admit(request: FastifyRequest, reply: FastifyReply, route: Route): Promise<void> {
      const context = currentRequest() as RequestContext;
      const { clientIp } = context;
      const { access, limit } = route;
      const credential = access === 'public' ? undefined : readCredential(request.raw);
      const recalled = credential && 'text' in credential ? authenticator.recall(credential, clientIp) : undefined;
      // No check comes between the limits of a network and of a feed: one command counts both.
      const feedCount =
        limit?.per === 'application' ? { limit: limit.limit, subject: subjectOf(request, limit, context) } : undefined;
      const other = recalled ? principalCount(recalled.principal) : feedCount;
      const [network, counted] = other
        ? await limiter.hitBoth(ipCount(clientIp), other, recalled)
        : [await limiter.hit(ipCount(clientIp))];
      if (!network.allowed) throw limitReached(network);
      let global = network;
      if (credential) {
        const isKnown = recalled && counted;
        const { principal, state } = isKnown
          ? { principal: recalled.principal, state: counted }
          : await authenticate(credential, request, route, clientIp);
        global = tighter(network, state);
        if (!global.allowed) throw limitReached(global);
        context.principal = principal;
        if (principal.kind === 'key') requests.add(principal.credentialId, 'requests');
      }
      setLimitHeaders(reply, global);
      route.checkHead?.(request.raw);
      if (context.principal?.kind !== 'key' && isStateChanging(request.method))
        checkWebOrigin(request.raw, publicOrigin, request.protocol);
      context.limitState = global;
      if (limit) {
        const count = feedCount ?? { limit: limit.limit, subject: subjectOf(request, limit, context) };
        const state = (feedCount && counted) ?? (await limiter.hit(count));
        if (limit.successesOnly) context.refundable = { count, endsAt: performance.now() + state.resetMs };
        if (!state.allowed) throw limitReached(state);
        context.limitState = tighter(state, global);
        setLimitHeaders(reply, context.limitState);
      }
      if (context.principal) authorize(request, route, context.principal);
    },

    /** Takes a failed request out of a limit on successes, unless its window is over. */
    async refund(): Promise<void> {
      const { refundable } = currentRequest() ?? {};
      if (refundable && performance.now() < refundable.endsAt) await limiter.refund(refundable.count);
    },
  };
}

function subjectOf({ params }: FastifyRequest, { per }: RouteLimit, { clientIp, principal }: RequestContext): string {
  const network = networkOf(clientIp);
  if (per === 'account') return principal?.accountId ?? network;
  if (per === 'ip') return network;
  // One subject for all texts other than an id.
  return `${parseId((params as { readonly applicationId: string }).applicationId) ?? 'none'} ${network}`;
}

function authorize({ method, raw }: FastifyRequest, { access }: Route, principal: Principal): void {
  if (access === 'session' && principal.kind !== 'session') throw errors.session_required();
  if (principal.kind === 'session' && isStateChanging(method)) checkCsrfToken(raw, principal);
  // A session has every scope of its account.
  if (principal.kind === 'key' && !principal.scopes.has(access)) throw errors.scope_missing();
}
