import type { DescMessage, DescMethod } from '@bufbuild/protobuf';
import { readDefinitions, reasonsOf } from '@latchkey/kit/errors/error-catalogue';
import { DomainError, ERROR_KINDS } from '@latchkey/kit/errors/errors';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { AvatarService } from '@latchkey/proto/latchkey/files/v1/avatar_pb';
import { FileService } from '@latchkey/proto/latchkey/files/v1/file_pb';
import { AccountService } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { ApiKeyService } from '@latchkey/proto/latchkey/identity/v1/api_key_pb';
import { AuthenticationService } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { OidcService } from '@latchkey/proto/latchkey/identity/v1/oidc_pb';
import { TwoFactorService } from '@latchkey/proto/latchkey/identity/v1/two_factor_pb';
import { z } from 'zod';
import { isStateChanging } from '../authentication/csrf.ts';
import { errors } from '../errors.ts';
import type { Failure, Route } from '../routing/route.ts';

const SERVICES = [
  ApplicationService,
  AvatarService,
  FileService,
  AccountService,
  ApiKeyService,
  AuthenticationService,
  OidcService,
  TwoFactorService,
];

/** The errors of the services, by package and reason. */
const catalogue = new Map(
  SERVICES.flatMap(({ file }) => file.enums.filter(({ name }) => name.endsWith('Error'))).flatMap((errorEnum) =>
    [...readDefinitions(errorEnum)].map(([reason, definition]) => {
      return [`${errorEnum.file.proto.package}/${reason}`, new DomainError(reason, definition)] as const;
    }),
  ),
);

/** The errors that a method declares, or the response to a body. Throws Error for a reason that its package does not define. */
function declaredErrors(failing: DescMethod | DescMessage): DomainError[] {
  const file = failing.kind === 'rpc' ? failing.parent.file : failing.file;
  return reasonsOf(failing).map((reason) => {
    const err = catalogue.get(`${file.proto.package}/${reason}`);
    if (!err) throw new Error(`${failing.name} fails with ${reason}, which is not defined`);
    return err;
  });
}

/** When a status is sent, and with which codes, the likeliest first. */
type Meaning = readonly [sentence: string, codes: readonly string[]];

/** What any route may respond (specification 7). */
const ALWAYS: Readonly<Record<number, Meaning>> = {
  429: ['A limit is reached; `Retry-After` says for how many seconds.', ['rate_limit_reached']],
  500: ['An unexpected error; the message has its id.', ['INTERNAL_ERROR']],
  503: ['A dependency of the service is down; try again after `Retry-After` seconds.', ['INTERNAL_ERROR']],
};

const MISMATCH: Meaning = [
  'The request does not match the schema, or does not fit the resource.',
  ['VALIDATION_ERROR', 'bad_request'],
];
const TOO_LARGE: Meaning = ['The body is over 64 KiB.', ['VALIDATION_ERROR']];
const NOT_JSON: Meaning = ['The body is not JSON, or is encoded.', ['VALIDATION_ERROR']];
const NOT_BYTES: Meaning = ['The body is not `application/octet-stream`, or is encoded.', ['VALIDATION_ERROR']];
const A_FORM: Meaning = [
  'The `Content-Type` is that of a form, empty or malformed, or the body is encoded.',
  ['VALIDATION_ERROR'],
];
const KEY_REJECTED = ['api_key_invalid', 'api_key_expired', 'api_key_revoked'];
const FORBIDDEN = 'The credential may not do this.';

const DETAILS = { details: [{ path: 'body.name', message: 'must be 6 to 32 characters' }] };

/** The error responses of routes. Collects the codes that they use. */
export class ErrorResponses {
  readonly #codes = new Set<string>(['VALIDATION_ERROR']);

  /** The responses of a route to requests that fail, by status. */
  of(route: Route): Record<string, object> {
    const found = new Map<number, { readonly sentences: Set<string>; readonly codes: Set<string> }>();
    const meanings = [
      ...Object.entries(ALWAYS),
      ...ofInput(route),
      ...ofAccess(route),
      ...(route.failures ?? []).flatMap(ofFailure),
    ];
    for (const [key, [sentence, codes]] of meanings) {
      const status = Number(key);
      const known = found.get(status) ?? { sentences: new Set(), codes: new Set() };
      known.sentences.add(sentence);
      for (const code of codes) {
        known.codes.add(code);
        this.#codes.add(code);
      }
      found.set(status, known);
    }
    return Object.fromEntries([...found].map(([status, { sentences, codes }]) => [status, toResponse(status, sentences, codes)]));
  }

  /** The error envelope with the codes of all routes so far. */
  schema(): z.ZodType {
    const detail = z
      .object({
        path: z.string().meta({ description: 'The input; `request` if no single input is wrong.', examples: ['body.name'] }),
        message: z.string().meta({ description: 'The rule that it breaks.', examples: ['must be 6 to 32 characters'] }),
      })
      .meta({ id: 'ErrorDetail', description: 'An input that was rejected, and why.' });
    const code = z
      .enum([...this.#codes])
      .meta({ id: 'ErrorCode', description: 'Stable code of the error. Later releases may add codes.' });
    return z
      .object({
        success: z.literal(false),
        code,
        message: z
          .string()
          .meta({ description: 'The error in words, for people.', examples: [exampleMessage('VALIDATION_ERROR')] }),
        details: z.array(detail).max(10).optional().meta({
          description: 'Which inputs broke which rule. Only with `VALIDATION_ERROR` and `bad_request`.',
        }),
      })
      .meta({ id: 'Error', description: 'The response to every request that fails.' });
  }

  /** An example of each error, by its code. */
  examples(): Record<string, object> {
    const entries = [...this.#codes].map((code) => {
      const details = code === 'VALIDATION_ERROR' || code === 'bad_request' ? DETAILS : {};
      return [code, { value: { success: false, code, message: exampleMessage(code), ...details } }];
    });
    return Object.fromEntries(entries);
  }
}

function exampleMessage(code: string): string {
  if (code === ERROR_KINDS.internal.envelopeCode) return 'Internal server error. Error id: 019a9e41-9c18-7e33-8a6d-0f9b2c5d8e71';
  const own = Object.values(errors).map((create) => create());
  return [...own, ...catalogue.values()].find((err) => err.code === code)?.message ?? code;
}

function toResponse(status: number, sentences: ReadonlySet<string>, codes: ReadonlySet<string>): object {
  const examples = Object.fromEntries([...codes].map((code) => [code, { $ref: `#/components/examples/${code}` }]));
  return {
    description: [...sentences].join(' '),
    ...(HEADERS[status] && { headers: HEADERS[status] }),
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' }, examples } },
  };
}

function ofInput(route: Route): Array<[number, Meaning]> {
  // A route without a body rejects one.
  if (route.method === 'GET') return route.query ? [[400, MISMATCH]] : [];
  if (route.bytesBody)
    return [
      [400, MISMATCH],
      [415, route.bytesBody === 'any' ? A_FORM : NOT_BYTES],
    ];
  return [
    [400, MISMATCH],
    [413, TOO_LARGE],
    [415, NOT_JSON],
  ];
}

/** The responses of the gate. */
function ofAccess({ access, application, method }: Route): Array<[number, Meaning]> {
  const csrf = isStateChanging(method) ? ['csrf_invalid'] : [];
  if (access === 'public') return csrf.length > 0 ? [[403, ['A page of another origin sent it.', csrf]]] : [];
  if (access === 'session') {
    const session =
      '`unauth`: the session is missing, not valid or expired. `api_key_…`: the request has an API key, which is not valid.';
    return [
      [401, [session, ['unauth', ...KEY_REJECTED]]],
      [403, [FORBIDDEN, ['session_required', ...csrf]]],
    ];
  }
  const key =
    '`api_key_invalid`: there is neither an API key nor a session, or the key is not valid. `unauth`: the session is not valid or expired.';
  const responses: Array<[number, Meaning]> = [
    [401, [key, [...KEY_REJECTED, 'unauth']]],
    [403, [FORBIDDEN, ['insufficient_scope', ...csrf, ...(application ? ['application_forbidden'] : [])]]],
  ];
  return application ? [...responses, [404, ['Not found for this account.', ['not_found']]]] : responses;
}

/** What a failure adds to the responses. The gateway validates the input of services, so their `malformed` errors do not occur. */
function ofFailure(failure: Failure): Array<[number, Meaning]> {
  const declared = typeof failure === 'string' ? [errors[failure]()] : declaredErrors(failure);
  return declared
    .filter(({ kind, httpStatus }) => kind !== 'malformed' && !(httpStatus in ALWAYS))
    .map(({ httpStatus, message, code }) => [httpStatus, [`${message.replace(/[.]$/, '')}.`, [code]]]);
}

const RETRY_AFTER = {
  'Retry-After': { description: 'Seconds until the request may be tried again.', schema: { type: 'integer' }, example: 30 },
};

/** Headers of responses to requests that may be tried again (decisions 3). */
const HEADERS: Readonly<Record<number, object>> = {
  429: {
    ...RETRY_AFTER,
    RateLimit: {
      description: 'The limit that rejected the request: what is left (`r`), and the seconds until it is reset (`t`).',
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
