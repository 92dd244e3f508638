import { successEnvelope } from '@latchkey/kit/http/envelope';
import type { FastifyInstance, FastifyRequest, FastifySchema } from 'fastify';
import { errors } from '../errors.ts';
import { leaveBodyUnread, whileBytesCome } from '../http/bytes-body.ts';
import type { Entrance, Gate } from './gate.ts';
import { Otherwise, type Route } from './route.ts';

/** Puts a route on the server: the gate before the body is read, then the schema, then the handler, then the envelope. */
export function registerRoute(app: FastifyInstance, gate: Gate, route: Route): void {
  if (!route.takesBytes) {
    addRoute(app, gate, route);
    return;
  }
  // Parsers of bodies belong to a part of the server.
  void app.register(async (part) => {
    leaveBodyUnread(part, route.ofAnyType ? 'any' : 'plain');
    addRoute(part, gate, route);
  });
}

function addRoute(app: FastifyInstance, gate: Gate, route: Route): void {
  const entrances = new WeakMap<FastifyRequest, Entrance>();
  app.route({
    method: route.method,
    url: route.url,
    schema: toValidationSchemas(route),
    config: { takesBytes: route.takesBytes === true },
    onRequest: async (request, reply) => {
      entrances.set(request, await gate.enter(request, reply, route));
      if (!route.handle) throw errors.route_not_found();
    },
    handler: async (request, reply) => {
      const { principal, ...entrance } = entrances.get(request) as Entrance;
      const { body, query, params, headers, raw } = request;
      if (!route.body && !route.takesBytes && !isEmpty(body))
        throw errors.request_invalid().withDetails({ path: 'body', message: 'must be absent or empty' });
      const given = { ...entrance, principal: principal as never, body, query, params, headers, raw, reply };
      const handle = async () => route.handle?.(given);
      const answer = await (route.takesBytes ? whileBytesCome(raw, handle) : handle());
      if (route.answersBytes || (route.redirects && reply.sent)) return reply;
      if (route.otherMessage !== undefined && answer instanceof Otherwise)
        return successEnvelope(route.otherMessage, answer.data);
      const { data, beside } = route.beside ? (answer as { data: unknown; beside: object }) : { data: answer };
      return successEnvelope(route.message, data, beside);
    },
    ...(route.limit?.successesOnly && {
      onSend: async (request: FastifyRequest, reply: { statusCode: number }) => {
        if (reply.statusCode >= 400) await gate.refund(request);
      },
    }),
  });
}

/** What requests are checked with. */
function toValidationSchemas({ body, query, params, headers }: Route): FastifySchema {
  return { ...(body && { body }), ...(query && { querystring: query }), ...(params && { params }), ...(headers && { headers }) };
}

/** Whether a route that takes no body got none; clients that always send JSON send an empty object. */
function isEmpty(body: unknown): boolean {
  return (
    body === undefined || (typeof body === 'object' && body !== null && !Array.isArray(body) && Object.keys(body).length === 0)
  );
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the route reads the body by itself. */
    readonly takesBytes?: boolean;
  }
}
