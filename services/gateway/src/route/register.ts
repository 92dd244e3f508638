import { successEnvelope } from '@latchkey/kit/http/response';
import type { FastifyInstance, FastifyRequest, FastifySchema } from 'fastify';
import type { Principal } from '../authentication/principal.ts';
import type { Clients } from '../clients.ts';
import { errors } from '../errors.ts';
import { leaveBodyUnread, whileBytesCome } from '../http/bytes-body.ts';
import { resolveApplication } from './application.ts';
import type { Entrance, Gate } from './gate.ts';
import { Otherwise, type Route } from './route.ts';

/** What routes are registered with. */
export interface RegisterOptions {
  readonly gate: Gate;
  readonly clients: Pick<Clients, 'applications'>;
}

/**
 * Registers a route: the gate before the body is read, then the schema, the application, the handler and the envelope
 * (decisions 2).
 */
export function registerRoute(app: FastifyInstance, options: RegisterOptions, route: Route): void {
  if (!route.takesBytes) {
    addRoute(app, options, route);
    return;
  }
  // Body parsers belong to an encapsulated part of the server.
  void app.register(async (part) => {
    leaveBodyUnread(part, route.ofAnyType ? 'any' : 'plain');
    addRoute(part, options, route);
  });
}

function addRoute(app: FastifyInstance, { gate, clients }: RegisterOptions, route: Route): void {
  const entrances = new WeakMap<FastifyRequest, Entrance>();
  app.route({
    method: route.method,
    url: route.url,
    schema: toValidationSchemas(route),
    config: { takesBytes: route.takesBytes === true },
    onRequest: async (request, reply) => {
      entrances.set(request, await gate.enter(request, reply, route));
    },
    handler: async (request, reply) => {
      if (!route.body && !route.takesBytes) checkNoBody(request);
      const entrance = entrances.get(request) as Entrance;
      const principal = entrance.principal as Principal;
      const { body, query, params, headers, raw } = request;
      const place = { body, query } as Readonly<Record<string, { readonly applicationId: string }>>;
      const handle = async () => {
        const id = route.application && place[route.application]?.applicationId;
        const application = id === undefined ? undefined : await resolveApplication(clients, principal, id);
        return route.handle({ ...entrance, principal, application, body, query, params, headers, raw, reply });
      };
      const result = await (route.takesBytes ? whileBytesCome(raw, handle) : handle());
      if (route.answersBytes || (route.redirects && reply.sent)) return reply;
      if (route.otherMessage !== undefined && result instanceof Otherwise)
        return successEnvelope(route.otherMessage, result.data);
      const { data, beside } = route.beside ? (result as { data: unknown; beside: object }) : { data: result };
      return successEnvelope(route.message, data, beside);
    },
    ...(route.limit?.successesOnly && {
      onSend: async (request: FastifyRequest, reply: { statusCode: number }) => {
        if (reply.statusCode >= 400) await gate.refund(request);
      },
    }),
  });
}

function toValidationSchemas({ body, query, params, headers }: Route): FastifySchema {
  return { ...(body && { body }), ...(query && { querystring: query }), ...(params && { params }), ...(headers && { headers }) };
}

/** Throws `request_invalid` for the body of a route without one. Clients that always send JSON may send an empty object. */
function checkNoBody({ body }: FastifyRequest): void {
  const isObject = typeof body === 'object' && body !== null && !Array.isArray(body);
  if (body === undefined || (isObject && Object.keys(body).length === 0)) return;
  throw errors.request_invalid().withDetails({ path: 'body', message: 'must be absent or empty' });
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the route reads the body by itself. */
    readonly takesBytes?: boolean;
  }
}
