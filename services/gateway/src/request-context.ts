import { AsyncLocalStorage } from 'node:async_hooks';
import { formatActor } from '@latchkey/audit/actor';
import { canonicalIp } from '@latchkey/kit/http/client-ip';
import { onBehalfOf } from '@latchkey/kit/log/request-context';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Principal } from './authentication/principal.ts';

/** What the calls to services carry of the request that makes them. */
export interface RequestContext {
  readonly requestId: string;
  readonly clientIp: string;
  /** Unknown before the gate has authenticated the request, and on public routes. */
  principal: Pick<Principal, 'kind' | 'credentialId'> | undefined;
}

const contexts = new AsyncLocalStorage<RequestContext>();

/** The request that this code runs for; undefined outside of requests. */
export function currentRequest(): RequestContext | undefined {
  return contexts.getStore();
}

/** Runs the hooks and the handler of each request in a context of its own. */
export function provideRequestContext(app: FastifyInstance): void {
  app.addHook('onRequest', (request: FastifyRequest, _reply, done) => {
    const context = { requestId: request.id, clientIp: clientIpOf(request), principal: undefined };
    onBehalfOf(request.id, () => contexts.run(context, done));
  });
}

/** The client's address. A forwarded text that is no address counts as that of the proxy itself. */
function clientIpOf({ ip, raw }: FastifyRequest): string {
  return canonicalIp(ip, raw.socket.remoteAddress);
}

/** Who makes a request, as services write it to the audit log. */
export function formatRequestActor({ principal, clientIp: address }: Omit<RequestContext, 'requestId'>): string {
  const kind = principal === undefined ? 'anonymous' : principal.kind === 'key' ? 'api_key' : 'session';
  return formatActor({ kind, credentialId: principal?.credentialId, address }) as string;
}
