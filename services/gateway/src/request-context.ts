import { AsyncLocalStorage } from 'node:async_hooks';
import { formatActor } from '@latchkey/audit/actor';
import { canonicalIp } from '@latchkey/kit/http/client-ip';
import { onBehalfOf } from '@latchkey/kit/log/request-context';
import type { FastifyInstance } from 'fastify';
import type { Principal } from './authentication/credential.ts';
import type { Count } from './rate-limit/rate-limiter.ts';
import type { LimitState } from './rate-limit/rate-limits.ts';

export interface RequestContext {
  readonly requestId: string;
  readonly clientIp: string;
  /** Undefined before authentication, and on public routes. */
  principal: Principal | undefined;
  /** The tightest limit, once the request is admitted. */
  limitState?: LimitState;
  /** A count to take back if the request fails, until its window ends at a `performance.now()`. */
  refundable?: { readonly count: Count; readonly endsAt: number };
  idempotency?: Readonly<Record<string, string>>;
  isReplayed?: boolean;
}

const contexts = new AsyncLocalStorage<RequestContext>();

export function currentRequest(): RequestContext | undefined {
  return contexts.getStore();
}

export function provideRequestContext(app: FastifyInstance): void {
  app.addHook('onRequest', ({ id, ip, raw }, _reply, done) => {
    // A forwarded text other than an address counts as that of the proxy.
    const context = { requestId: id, clientIp: canonicalIp(ip, raw.socket.remoteAddress), principal: undefined };
    onBehalfOf(id, () => contexts.run(context, done));
  });
}

/** The actor of a request, as services write it to the audit log. */
export function formatRequestActor({ principal, clientIp: address }: Pick<RequestContext, 'principal' | 'clientIp'>): string {
  const kind = principal === undefined ? 'anonymous' : principal.kind === 'key' ? 'api_key' : 'session';
  return formatActor({ kind, credentialId: principal?.credentialId, address }) as string;
}
