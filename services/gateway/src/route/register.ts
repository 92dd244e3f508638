import type { FastifyInstance, FastifyRequest, FastifySchema } from 'fastify';
import { z } from 'zod';
import { errors } from '../errors.ts';
import { successEnvelope } from '../http/envelope.ts';
import type { Entrance, Gate } from './gate.ts';
import type { Route } from './route.ts';

/** Puts a route on the server: the gate before the body is read, then the schema, then the handler, then the envelope. */
export function registerRoute(app: FastifyInstance, gate: Gate, route: Route): void {
  const entrances = new WeakMap<FastifyRequest, Entrance>();
  app.route({
    method: route.method,
    url: route.url,
    schema: toSchema(route),
    onRequest: async (request, reply) => {
      entrances.set(request, await gate.enter(request, reply, route));
      if (!route.handle) throw errors.route_not_found();
    },
    handler: async (request, reply) => {
      const { principal, call, clientIp } = entrances.get(request) as Entrance;
      const { body, query, params } = request;
      const data = await route.handle?.({ principal: principal as never, body, query, params, call, clientIp, reply });
      return successEnvelope(route.message, data);
    },
    ...(route.limit?.successesOnly && {
      onSend: async (request: FastifyRequest, reply: { statusCode: number }) => {
        if (reply.statusCode >= 400) await gate.refund(request);
      },
    }),
  });
}

const errorEnvelope = z
  .object({ success: z.literal(false), code: z.string(), message: z.string() })
  .meta({ description: 'The error envelope' });

/** Statuses that a route may answer beside 200. */
function errorStatuses(route: Route): number[] {
  const statuses = [429, 500, 503];
  if (route.body || route.query) statuses.push(400);
  if (route.body) statuses.push(413, 415);
  if (route.access !== 'public') statuses.push(401, 403);
  if (route.query || route.params || route.url.endsWith('delete-application')) statuses.push(404);
  return statuses.sort();
}

function toSchema(route: Route): FastifySchema {
  const { body, query, params, data, access } = route;
  const success = { success: z.literal(true), message: z.literal(route.message) };
  const response = Object.fromEntries(errorStatuses(route).map((status) => [status, errorEnvelope]));
  const security = access === 'public' ? [] : access === 'session' ? [{ session: [] }] : [{ managementKey: [] }, { session: [] }];
  return {
    tags: [route.tag],
    summary: route.summary,
    description: [route.description, scopeSentence(route)].filter(Boolean).join('\n\n'),
    security,
    hide: route.handle === undefined,
    ...(body && { body }),
    ...(query && { querystring: query }),
    ...(params && { params }),
    response: { 200: data ? z.object({ ...success, data }) : z.object(success), ...response },
  } as FastifySchema;
}

function scopeSentence({ access }: Route): string {
  if (access === 'public') return '';
  return access === 'session' ? 'Needs a dashboard session.' : `Needs the scope \`${access}\`, or a dashboard session.`;
}
