import { successEnvelope } from '@latchkey/kit/http/response';
import { REPLAYED_HEADER } from '@latchkey/kit/rpc/route';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Principal } from '../authentication/credential.ts';
import type { Clients } from '../clients.ts';
import { errors } from '../errors.ts';
import { addIdempotency } from '../http/idempotency.ts';
import { parseForms } from '../http/oauth.ts';
import { leaveBodyUnread, withoutIdleTimeout } from '../http/request-body.ts';
import type { LimitState } from '../rate-limit/rate-limits.ts';
import { currentRequest, type RequestContext } from '../request-context.ts';
import type { Gate } from './gate.ts';
import type { WaitForLargeResponse } from './large-responses.ts';
import { createPresenter, type Present } from './present.ts';
import { resolveApplication } from './resolve-application.ts';
import { AlternativeSuccess, type Route } from './route.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    readonly takesBytes?: boolean;
    readonly isOAuth?: boolean;
  }
}

/** The context of a request that the gate has admitted. Only public routes have no principal. */
type AdmittedContext = RequestContext & { readonly principal: Principal; readonly limitState: LimitState };

export interface RouteChecks {
  readonly gate: Gate;
  readonly clients: Clients;
  readonly waitForLargeResponse: WaitForLargeResponse;
}

/**
 * Registers a route. A request passes these checks in this order, each with its own error:
 *
 * 1. well-formed head (400)
 * 2. rate limit of the network (429), then known path (404) and method (405)
 * 3. credential (401)
 * 4. rate limit of the key or the session (429)
 * 5. origin of a request that changes state (403), so that other sites do not use up the next limit
 * 6. rate limit of the route (429)
 * 7. kind of credential, CSRF token of a session, scope of a key (403)
 * 8. encoding, type, size and syntax of the body (415, 413, 400)
 * 9. schema of path, body, query and headers (400)
 * 10. application: owned by the account (404), allowed for the key (403)
 *
 * The gate makes 2 to 7 before the body is read. Services check everything else.
 */
export function registerRoute(app: FastifyInstance, checks: RouteChecks, route: Route): void {
  const { bytesBody, isOAuth } = route;
  if (!bytesBody && !isOAuth) {
    addRoute(app, checks, route);
    return;
  }
  // Body parsers belong to an encapsulated part of the server.
  void app.register(async (part) => {
    if (bytesBody) leaveBodyUnread(part, bytesBody);
    else parseForms(part);
    addRoute(part, checks, route);
  });
}

function addRoute(app: FastifyInstance, { gate, clients, waitForLargeResponse }: RouteChecks, route: Route): void {
  const { method, url, body, isBodyOptional, query, params, headers, bytesBody, isOAuth = false } = route;
  const present = route.data && createPresenter(route.data);
  app.route({
    method,
    url,
    // Fastify warns of each part that is present and undefined.
    schema: {
      ...(body && { body }),
      ...(query && { querystring: query }),
      ...(params && { params }),
      ...(headers && { headers }),
    },
    config: { takesBytes: bytesBody !== undefined, isOAuth },
    onRequest: async (request, reply) => {
      if (route.headersAlways) reply.headers(route.headersAlways);
      await gate.admit(request, reply, route);
    },
    ...(isBodyOptional && {
      preValidation: async (request: FastifyRequest) => {
        if (request.headers['content-type'] === undefined && !request.body) request.body = {};
      },
    }),
    handler: async (request, reply) => {
      if (!body && !bytesBody) checkNoBody(request);
      const context = currentRequest() as AdmittedContext;
      addIdempotency(request, route);
      const handle = async () => {
        const { principal, clientIp, limitState } = context;
        if (route.isLarge) await waitForLargeResponse(principal.accountId, reply.raw);
        const idText = route.application && (request[route.application] as { readonly applicationId: string }).applicationId;
        const application = idText === undefined ? undefined : await resolveApplication(clients, principal, idText);
        const { body, query, params, headers, raw } = request;
        return route.handle({ principal, clientIp, limitState, application, body, query, params, headers, raw, reply });
      };
      const result = await (bytesBody ? withoutIdleTimeout(request.raw, handle) : handle());
      if (context.isReplayed) reply.header(REPLAYED_HEADER, 'true');
      if (isOAuth) return result;
      if (route.bytesResponse || (route.redirects && reply.sent)) return reply;
      if (route.successStatus) reply.code(route.successStatus);
      return route.successStatus === 204 ? reply.send() : toEnvelope(route, present, result);
    },
    ...(route.limit?.successesOnly && {
      onSend: async (_request: FastifyRequest, reply: { statusCode: number }) => {
        if (reply.statusCode >= 400) await gate.refund();
      },
    }),
  });
}

/** The result of a route without `data` is that of its last call, which clients do not get. */
function toEnvelope({ message, alternativeMessage = message, pageSize }: Route, present: Present | undefined, result: unknown) {
  if (result instanceof AlternativeSuccess) return successEnvelope(alternativeMessage, present?.(result.data));
  if (pageSize === undefined) return successEnvelope(message, present?.(result));
  const { data, total } = result as { readonly data: unknown; readonly total: bigint | number };
  return successEnvelope(message, present?.(data), { totalPages: Math.ceil(Number(total) / pageSize) });
}

/** Throws `request_invalid` for a body other than `{}`, which some clients always send. */
function checkNoBody({ body }: FastifyRequest): void {
  const isObject = typeof body === 'object' && body !== null && !Array.isArray(body);
  if (body === undefined || (isObject && Object.keys(body).length === 0)) return;
  throw errors.request_invalid().withDetails({ path: 'body', message: 'must be absent or empty' });
}
