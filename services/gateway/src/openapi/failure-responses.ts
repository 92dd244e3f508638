import { z } from 'zod';
import { isStateChanging } from '../authentication/csrf.ts';
import { FAILURES } from '../route/failure.ts';
import type { Route } from '../route/route.ts';
import { type ErrorCode, error } from './error.ts';
import type { SchemaCollection } from './schemas.ts';

/** What is said of a status: when it comes, and with which codes, the likeliest first. */
type Saying = readonly [sentence: string, codes: readonly ErrorCode[]];

/** What any route may answer (specification 7). */
const ALWAYS = {
  429: ['A limit is reached; `Retry-After` says for how many seconds.', ['rate_limit_reached']],
  500: ['An error that nobody expected; the message has its id.', ['INTERNAL_ERROR']],
  503: ['Something that the service depends on is down; try again after `Retry-After` seconds.', ['INTERNAL_ERROR']],
} as const satisfies Record<number, Saying>;

const NOT_FITTING: Saying = [
  'The request does not match the schema, or does not fit the resource.',
  ['VALIDATION_ERROR', 'bad_request'],
];
const TOO_LARGE: Saying = ['The body is over 64 KiB.', ['VALIDATION_ERROR']];
const NOT_JSON: Saying = ['The body is not JSON, or is encoded.', ['VALIDATION_ERROR']];
const NOT_BYTES: Saying = ['The body is not `application/octet-stream`, or is encoded.', ['VALIDATION_ERROR']];
const A_FORM: Saying = [
  'The body is said to be a form, its `Content-Type` is empty or malformed, or it is encoded.',
  ['VALIDATION_ERROR'],
];
const NO_APPLICATION: Saying = ['Not found for this account.', ['not_found']];
const KEY_REFUSED = ['api_key_invalid', 'api_key_expired', 'api_key_revoked'] as const;

/** The responses of a route to requests that fail, by status. */
export function failureResponses(route: Route, schemas: SchemaCollection): Record<string, object> {
  const found = new Map<number, { readonly sentences: string[]; readonly codes: Set<ErrorCode> }>();
  const add = (status: number, [sentence, codes]: Saying) => {
    const { sentences, codes: known } = found.get(status) ?? { sentences: [], codes: new Set<ErrorCode>() };
    found.set(status, { sentences: [...sentences, sentence], codes: new Set([...known, ...codes]) });
  };
  for (const [status, saying] of [...Object.entries(ALWAYS), ...ofInput(route), ...ofAccess(route)]) add(Number(status), saying);
  for (const name of route.failures ?? []) {
    const { status, when, code = name }: { status: number; when: string; code?: string } = FAILURES[name];
    add(status, [when, [code as ErrorCode]]);
  }
  const schema = schemas.add(error, 'output');
  const responses = [...found].map(([status, { sentences, codes }]) => {
    const response = { description: sentences.join(' '), ...(HEADERS[status] && { headers: HEADERS[status] }) };
    return [status, { ...response, content: { 'application/json': { schema, examples: toExamples([...codes]) } } }] as const;
  });
  return Object.fromEntries(responses);
}

const toExamples = (codes: readonly ErrorCode[]) =>
  Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }]));

function ofInput(route: Route): Array<[number, Saying]> {
  // Where nothing is expected in a body, something in it is refused as well.
  if (route.method === 'GET') return route.query ? [[400, NOT_FITTING]] : [];
  if (route.takesBytes)
    return [
      [400, NOT_FITTING],
      [415, route.ofAnyType ? A_FORM : NOT_BYTES],
    ];
  return [
    [400, NOT_FITTING],
    [413, TOO_LARGE],
    [415, NOT_JSON],
  ];
}

/** What the gate answers to whoever may not call the route, or not for that application. */
function ofAccess(route: Route): Array<[number, Saying]> {
  const { access } = route;
  const csrf: ErrorCode[] = isStateChanging(route.method) ? ['csrf_invalid'] : [];
  if (access === 'public') return csrf.length > 0 ? [[403, ['A page of another origin sent it.', csrf]]] : [];
  const may = 'The credential may not do this.';
  if (access === 'session') {
    const session: Saying = [
      '`unauth`: the session is missing, not valid or expired. `api_key_…`: the request has an API key, which is not valid.',
      ['unauth', ...KEY_REFUSED],
    ];
    return [
      [401, session],
      [403, [may, ['session_required', ...csrf]]],
    ];
  }
  const key: Saying = [
    '`api_key_invalid`: there is neither an API key nor a session, or the key is not valid. `unauth`: the session is not valid or expired.',
    [...KEY_REFUSED, 'unauth'],
  ];
  const scope: ErrorCode[] = ['insufficient_scope', ...csrf];
  if (!namesApplication(route))
    return [
      [401, key],
      [403, [may, scope]],
    ];
  return [
    [401, key],
    [403, [may, [...scope, 'application_forbidden']]],
    [404, NO_APPLICATION],
  ];
}

function namesApplication({ query, body }: Route): boolean {
  return [query, body].some((schema) => schema instanceof z.ZodObject && 'applicationId' in schema.shape);
}

const RETRY_AFTER = {
  'Retry-After': { description: 'Seconds until the request may be tried again.', schema: { type: 'integer' }, example: 30 },
};

/** The headers of those that may be tried again (decisions 3). */
const HEADERS: Readonly<Record<number, object>> = {
  429: {
    ...RETRY_AFTER,
    RateLimit: {
      description: 'The limit that denied the request: what is left (`r`), and the seconds until it is reset (`t`).',
      schema: { type: 'string' },
      example: '"ip";r=0;t=30',
    },
    'RateLimit-Policy': {
      description: 'The quota (`q`) of that limit, and its window in seconds (`w`).',
      schema: { type: 'string' },
      example: '"ip";q=600;w=60',
    },
  },
  503: RETRY_AFTER,
};
