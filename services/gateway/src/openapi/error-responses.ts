import type { DescEnum, DescMessage, DescMethod } from '@bufbuild/protobuf';
import { APPLICATION_NAME, describeLength } from '@latchkey/contract/lengths';
import { JSON_BODY_KIB_MAX } from '@latchkey/contract/limits';
import { commonErrors, type DomainError, ERROR_KINDS } from '@latchkey/kit/errors/errors';
import { createErrors, reasonsOf } from '@latchkey/kit/errors/read-proto-errors';
import { z } from 'zod';
import { isStateChanging } from '../authentication/csrf.ts';
import { METHODS, SERVICES } from '../clients.ts';
import { errors } from '../errors.ts';
import { takesIdempotencyKey } from '../http/idempotency.ts';
import { oauthError, oauthStatus } from '../http/oauth.ts';
import type { Route } from '../routing/route.ts';

const ENUMS = SERVICES.flatMap(({ file }) => file.enums.filter(({ name }) => name.endsWith('Error')));

const toCatalogue = (enums: readonly DescEnum[]): Readonly<Record<string, () => DomainError>> => createErrors(...enums);

/** The declared errors of a method or a response. Throws Error for a reason without definition. */
function declaredErrors(source: DescMethod | DescMessage): DomainError[] {
  const { proto } = source.kind === 'rpc' ? source.parent.file : source.file;
  const enums = ENUMS.filter(({ file }) => file.proto.package === proto.package);
  const known = toCatalogue(enums);
  return reasonsOf(source, enums).map((reason) => {
    const create = known[reason];
    if (!create) throw new Error(`${source.name} fails with ${reason}, which is not defined`);
    return create();
  });
}

/** Condition of a status and its codes, the likeliest first. */
type Rule = readonly [status: number, sentence: string, ...codes: string[]];

const ANY_ROUTE: readonly Rule[] = [
  [429, 'A limit is reached; `Retry-After` says for how many seconds.', 'rate_limit_reached'],
  [500, 'An unexpected error; the message has its id.', 'INTERNAL_ERROR'],
  [503, 'A dependency of the service is down; try again after `Retry-After` seconds.', 'INTERNAL_ERROR'],
];
const LONG_HEAD: Rule = [431, 'The head of the request, with its URL, is over 16 KiB.', 'bad_request'];
const ANY_CHANGE: Rule = [503, 'Or the result was lost: the change may have been made.', 'outcome_unknown'];
const KEPT: readonly Rule[] = [
  [
    409,
    'A request with the same `Idempotency-Key` is still running; `Retry-After` says when to repeat it.',
    'idempotency_in_progress',
  ],
  [422, 'The `Idempotency-Key` was used for another request.', 'idempotency_key_reused'],
];
const NOT_JSON = 'The body is not JSON, or is encoded.';
const WRONG_BYTES = {
  plain: 'The body is not `application/octet-stream`, or is encoded.',
  chunk: 'The `Content-Type` is not `application/offset+octet-stream`, or the body is encoded.',
  any: 'The `Content-Type` is that of a form, empty or malformed, or the body is encoded.',
};
const KEY_REJECTED = ['api_key_invalid', 'api_key_expired', 'api_key_revoked'];
const NO_SESSION =
  '`unauth`: the session is missing, not valid or expired. `api_key_…`: the request has an API key, which is not valid.';
const NO_CREDENTIAL =
  '`api_key_invalid`: there is neither an API key nor a session, or the key is not valid. `unauth`: the session is not valid or expired.';
const FORBIDDEN = 'The credential may not do this.';
const NAME_RULE = `must be ${describeLength(APPLICATION_NAME)}`;
const DETAILS = { details: [{ path: 'body.name', message: NAME_RULE }] };

export class ErrorResponses {
  readonly #codes = new Set<string>(['VALIDATION_ERROR']);

  of(route: Route): Record<string, object> {
    if (route.isOAuth) return OAUTH_RESPONSES;
    const rules: readonly Rule[] = [
      ...ANY_ROUTE,
      LONG_HEAD,
      ...(isStateChanging(route.method) ? [ANY_CHANGE] : []),
      ...inputRules(route),
      ...accessRules(route),
      ...[route.operationId, ...(route.failures ?? [])].flatMap(failureRules),
      ...(takesIdempotencyKey(route) ? KEPT : []),
    ];
    for (const code of rules.flatMap(([, , ...codes]) => codes)) this.#codes.add(code);
    const byStatus = [...Map.groupBy(rules, ([status]) => status)];
    return Object.fromEntries(byStatus.map(([status, those]) => [status, toResponse(status, those)]));
  }

  schema(): z.ZodType {
    const detail = z
      .object({
        path: z.string().meta({ description: 'The input; `request` if no single input is wrong.', examples: ['body.name'] }),
        message: z.string().meta({ description: 'The rule that it breaks.', examples: [NAME_RULE] }),
      })
      .meta({ id: 'ErrorDetail', description: 'An input that was rejected, and why.' });
    const code = z
      .enum([...this.#codes])
      .meta({ id: 'ErrorCode', description: 'Stable code of the error. Later releases may add codes.' });
    const message = { description: 'The error in words, for people.', examples: [exampleMessage('VALIDATION_ERROR')] };
    const description = 'Which inputs broke which rule. Only with `VALIDATION_ERROR` and `bad_request`.';
    const details = z.array(detail).max(10).optional().meta({ description });
    return z
      .object({ success: z.literal(false), code, message: z.string().meta(message), details })
      .meta({ id: 'Error', description: 'The response to every request that fails.' });
  }

  examples(): Record<string, object> {
    const entries = [...this.#codes].map((code) => {
      const details = code === 'VALIDATION_ERROR' || code === 'bad_request' ? DETAILS : {};
      return [code, { value: { success: false, code, message: exampleMessage(code), ...details } }];
    });
    return Object.fromEntries(entries);
  }
}

const EXAMPLES = Object.values({ ...errors, ...commonErrors, ...toCatalogue(ENUMS) }).map((create) => create());

function exampleMessage(code: string): string {
  if (code === ERROR_KINDS.internal.envelopeCode) return 'Internal server error. Error id: 019a9e41-9c18-7e33-8a6d-0f9b2c5d8e71';
  return EXAMPLES.find((err) => err.code === code)?.message ?? code;
}

function toResponse(status: number, rules: readonly Rule[]): object {
  const sentences = new Set(rules.map(([, sentence]) => sentence));
  const codes = new Set(rules.flatMap(([, , ...those]) => those));
  const examples = Object.fromEntries([...codes].map((code) => [code, { $ref: `#/components/examples/${code}` }]));
  return describeResponse(status, [...sentences].join(' '), { schema: { $ref: '#/components/schemas/Error' }, examples });
}

function describeResponse(status: number, description: string, json: object): object {
  return { description, ...(HEADERS[status] && { headers: HEADERS[status] }), content: { 'application/json': json } };
}

function inputRules({ method, query, bytesBody }: Route): Rule[] {
  const mismatch: Rule = [
    400,
    'The request does not match the schema, or does not fit the resource.',
    'VALIDATION_ERROR',
    'bad_request',
  ];
  // A route without a body rejects one.
  if (!isStateChanging(method)) return query ? [mismatch] : [];
  if (bytesBody) return [mismatch, [415, WRONG_BYTES[bytesBody], 'VALIDATION_ERROR']];
  return [mismatch, [413, `The body is over ${JSON_BODY_KIB_MAX} KiB.`, 'VALIDATION_ERROR'], [415, NOT_JSON, 'VALIDATION_ERROR']];
}

function accessRules({ access, application, method }: Route): Rule[] {
  const csrf = isStateChanging(method) ? ['csrf_invalid'] : [];
  if (access === 'public') return csrf.map((code) => [403, 'A page of another origin sent it.', code]);
  if (access === 'session')
    return [
      [401, NO_SESSION, 'unauth', ...KEY_REJECTED],
      [403, FORBIDDEN, 'session_required', ...csrf],
    ];
  const forbidden = application ? ['application_forbidden'] : [];
  return [
    [401, NO_CREDENTIAL, ...KEY_REJECTED, 'unauth'],
    [403, FORBIDDEN, 'insufficient_scope', ...csrf, ...forbidden],
    ...(application ? [[404, 'Not found for this account.', 'not_found'] as const] : []),
  ];
}

/** The gateway validates the input of services, so their `malformed` errors do not occur. */
function failureRules(failure: DescMessage | string): Rule[] {
  const source = typeof failure === 'string' ? METHODS.get(failure) : failure;
  const ownErrors = Object.entries(errors).filter(([reason]) => reason === failure);
  const declared = source ? declaredErrors(source) : ownErrors.map(([, create]) => create());
  return declared
    .filter(({ kind, code }) => kind !== 'malformed' && !ANY_ROUTE.some(([, , ...codes]) => codes.includes(code)))
    .map(({ httpStatus, message, code }) => [httpStatus, `${message.replace(/[.]$/, '')}.`, code]);
}

const toHeader = (description: string, example: string) => ({ description, schema: { type: 'string' }, example });

const RETRY_AFTER = {
  'Retry-After': { description: 'Seconds until the request may be tried again.', schema: { type: 'integer' }, example: 30 },
};

const HEADERS: Readonly<Record<number, object>> = {
  429: {
    ...RETRY_AFTER,
    RateLimit: toHeader(
      'The limit that rejected the request: what is left (`r`), and the seconds until it is reset (`t`).',
      '"ip";r=0;t=30',
    ),
    'RateLimit-Policy': toHeader('The quota (`q`) of that limit, and its window in seconds (`w`).', '"ip";q=600;w=60'),
  },
  503: RETRY_AFTER,
};

const OAUTH_RULES: ReadonlyArray<readonly [sentence: string, reason: string]> = [
  ['The request is rejected: `invalid_request`, `invalid_scope`, `invalid_target` or `unsupported_grant_type`.', 'token_used'],
  ['A limit is reached; `Retry-After` says when to repeat.', 'rate_limit_reached'],
  ['An unexpected error.', 'internal_error'],
  ['The issuer or a dependency does not respond; the token may have been used.', 'dependency_unavailable'],
];
const OAUTH_PROPERTIES = { error: { type: 'string' }, error_description: { type: 'string' } };
const OAUTH_SCHEMA = { type: 'object', properties: OAUTH_PROPERTIES, required: Object.keys(OAUTH_PROPERTIES) };

const OAUTH_RESPONSES = Object.fromEntries(
  OAUTH_RULES.map(([sentence, reason]) => {
    const err = EXAMPLES.find((example) => example.reason === reason) as DomainError;
    const status = oauthStatus(err);
    return [status, describeResponse(status, sentence, { schema: OAUTH_SCHEMA, example: oauthError(err) })];
  }),
);
