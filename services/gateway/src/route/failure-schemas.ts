import { z } from 'zod';
import { BY_CODE } from './failure.ts';
import type { Route } from './route.ts';

/** The codes that come with each status, and when (specification 7). */
const BY_STATUS = {
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
  409: ['The username or the email is taken.', ['account_exists']],
  413: ['The body is over 64 KiB.', ['VALIDATION_ERROR']],
  415: ['The body is not JSON.', ['VALIDATION_ERROR']],
  429: ['A limit is reached; `Retry-After` says for how many seconds.', ['rate_limit_reached']],
  500: ['An error that nobody expected; the message has its id.', ['INTERNAL_ERROR']],
  503: ['Something that the service depends on is down; try again after `Retry-After` seconds.', ['INTERNAL_ERROR']],
} as const;

/** What 415 means where bytes are taken. */
const NOT_BYTES = ['The body is not `application/octet-stream`, or is encoded.', ['VALIDATION_ERROR']] as const;

const A_FORM = ['The body is a form, or is encoded.', ['VALIDATION_ERROR']] as const;

/** What is said of one status. */
interface Description {
  readonly sentences: string[];
  readonly codes: string[];
}

/** The schemas of all that a route may answer but success, by status. */
export function failureSchemas(route: Route): Record<string, z.ZodType> {
  const found = new Map<number, Description>();
  const add = (status: number, [sentence, codes]: readonly [string, readonly string[]]) => {
    const description = found.get(status) ?? { sentences: [], codes: [] };
    found.set(status, description);
    description.sentences.push(sentence);
    description.codes.push(...codes);
  };
  for (const status of impliedStatuses(route)) add(status, BY_STATUS[status]);
  if (route.takesBytes) add(415, route.ofAnyType ? A_FORM : NOT_BYTES);
  for (const failure of route.failures ?? []) {
    if (typeof failure === 'number') add(failure, BY_STATUS[failure]);
    else add(BY_CODE[failure][0], [BY_CODE[failure][1], [failure]]);
  }
  return Object.fromEntries([...found].sort(([a], [b]) => a - b).map(([status, description]) => [status, toSchema(description)]));
}

function impliedStatuses(route: Route): Array<keyof typeof BY_STATUS> {
  const statuses: Array<keyof typeof BY_STATUS> = [429, 500, 503];
  const takesInput = route.takesBytes || route.body || route.query || route.params;
  // Where nothing is expected in a body, something in it is refused as well.
  if (route.method !== 'GET') statuses.push(400, ...(route.takesBytes ? [] : ([413, 415] as const)));
  else if (route.query) statuses.push(400);
  if (route.access !== 'public') statuses.push(401);
  if (route.access !== 'public' && !route.failures?.includes(403)) statuses.push(403);
  if (route.access !== 'public' && takesInput) statuses.push(404);
  return statuses;
}

function toSchema({ sentences, codes }: Description) {
  return z
    .object({ success: z.literal(false), code: z.enum(codes), message: z.string() })
    .meta({ description: sentences.join(' ') });
}
