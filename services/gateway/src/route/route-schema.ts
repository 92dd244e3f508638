import type { FastifySchema } from 'fastify';
import { z } from 'zod';
import type { Route } from './route.ts';

/** The codes that come with each status, and when (specification 7). */
const FAILURES = {
  400: ['The request does not match the schema, or does not fit the resource.', ['VALIDATION_ERROR', 'bad_request']],
  401: [
    'The credential is missing, wrong, expired or revoked.',
    ['api_key_invalid', 'api_key_expired', 'api_key_revoked', 'unauth'],
  ],
  403: [
    'The credential may not do this.',
    ['insufficient_scope', 'application_forbidden', 'session_required', 'csrf_invalid', 'limit_exceeded', 'sign_up_closed'],
  ],
  404: ['Not found for this account.', ['not_found']],
  409: ['The name, the username or the email is taken.', ['account_exists', 'file_name_taken']],
  413: ['The body is over 64 KiB.', ['VALIDATION_ERROR']],
  415: ['The body is not JSON.', ['VALIDATION_ERROR']],
  429: ['A limit is reached; `Retry-After` says for how many seconds.', ['rate_limit_reached']],
  500: ['An error that nobody expected; the message has its id.', ['INTERNAL_ERROR']],
  503: ['Something that the service depends on is down; try again after `Retry-After` seconds.', ['INTERNAL_ERROR']],
} as const;

type Status = keyof typeof FAILURES;

/** The schemas of a route: requests are checked with them, and the OpenAPI document is made from them. */
export function toRouteSchema(route: Route): FastifySchema {
  const { body, query, params, data, beside, access } = route;
  const success = { success: z.literal(true), message: z.literal(route.message) };
  const session = route.method === 'GET' ? { session: [] } : { session: [], csrf: [] };
  const security = access === 'public' ? [] : access === 'session' ? [session] : [{ managementKey: [] }, session];
  return {
    tags: [route.tag],
    summary: route.summary,
    description: [route.description, accessSentence(route)].filter(Boolean).join('\n\n'),
    security,
    hide: route.handle === undefined,
    ...(body && { body }),
    ...(query && { querystring: query }),
    ...(params && { params }),
    response: {
      200: z.object(data ? { ...success, data, ...beside } : success).meta({ description: 'Success.' }),
      ...Object.fromEntries(failureStatuses(route).map((status) => [status, failureSchema(status)])),
    },
  } as FastifySchema;
}

function failureStatuses(route: Route): Status[] {
  const statuses: Status[] = [429, 500, 503];
  // Where nothing is expected in a body, something in it is refused as well.
  if (route.method !== 'GET') statuses.push(400, 413, 415);
  else if (route.query) statuses.push(400);
  if (route.access !== 'public') statuses.push(401, 403);
  if (route.access !== 'public' && (route.body || route.query || route.params)) statuses.push(404);
  return [...statuses, ...(route.failures ?? [])].sort();
}

function failureSchema(status: Status) {
  const [description, codes] = FAILURES[status];
  return z.object({ success: z.literal(false), code: z.enum(codes), message: z.string() }).meta({ description });
}

function accessSentence({ access }: Route): string {
  if (access === 'public') return '';
  return access === 'session' ? 'Needs a dashboard session.' : `Needs the scope \`${access}\`, or a dashboard session.`;
}
