import type { FastifySchema } from 'fastify';
import { z } from 'zod';
import { BYTES_MEDIA_TYPE } from '../http/bytes-body.ts';
import { failureSchemas } from './failure-schemas.ts';
import type { Route } from './route.ts';

/** The body of a route that takes bytes, which nothing checks. */
const bytes = z.any().meta({ type: 'string', format: 'binary', description: 'The bytes, as they are.' });

/** The schemas of a route: requests are checked with them, and the OpenAPI document is made from them. */
export function toRouteSchema(route: Route): FastifySchema {
  const { body, query, params, data, beside, access, answersBytes, redirects } = route;
  const success = {
    success: z.literal(true),
    message: z.literal([route.message, ...(route.otherMessage === undefined ? [] : [route.otherMessage])]),
  };
  const envelope = z.object(data ? { ...success, data, ...beside } : success);
  const session = route.method === 'GET' ? { session: [] } : { session: [], csrf: [] };
  const security = access === 'public' ? [] : access === 'session' ? [session] : [{ managementKey: [] }, session];
  return {
    tags: [route.tag],
    summary: route.summary,
    description: [route.description, accessSentence(route)].filter(Boolean).join('\n\n'),
    security,
    hide: route.handle === undefined,
    ...(body && { body }),
    ...(route.takesBytes && { body: bytes, consumes: [BYTES_MEDIA_TYPE] }),
    ...(route.headers && { headers: route.headers }),
    ...(query && { querystring: query }),
    ...(params && { params }),
    response: {
      ...(answersBytes && bytesAnswers(answersBytes)),
      ...(!answersBytes && !redirects?.always && { 200: envelope.meta({ description: 'Success.', ...headersOf(route) }) }),
      // No content, that is.
      ...(redirects && {
        302: z.null().meta({ description: redirects.when, headers: { Location: { type: 'string', format: 'uri' } } }),
      }),
      ...failureSchemas(route),
    },
  } as FastifySchema;
}

/** The answers of a route that serves bytes with an entity tag. */
function bytesAnswers(mediaType: string) {
  return {
    200: { description: 'Success.', content: { [mediaType]: { schema: bytes } } },
    // No content, that is.
    304: z.null().meta({ description: 'There is nothing else than what `If-None-Match` names.' }),
  };
}

function headersOf({ successHeaders }: Route): { readonly headers?: object } {
  if (!successHeaders) return {};
  const described = Object.entries(successHeaders).map(([name, description]) => [name, { type: 'string', description }]);
  return { headers: Object.fromEntries(described) };
}

function accessSentence({ access }: Route): string {
  if (access === 'public') return '';
  return access === 'session' ? 'Needs a dashboard session.' : `Needs the scope \`${access}\`, or a dashboard session.`;
}
