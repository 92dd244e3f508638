import { beforeAll, describe, expect, it } from 'vitest';
import { useTestGateway } from '../testing/test-gateway.ts';

interface Operation {
  readonly requestBody: unknown;
  readonly responses: Record<string, { headers?: object; content: { 'application/json': { schema: object; examples: object } } }>;
}

const gateway = useTestGateway();
let paths: Record<string, Record<string, Operation>>;
beforeAll(async () => {
  const response = await fetch(`${gateway.baseUrl}/openapi.json`);
  ({ paths } = (await response.json()) as { paths: typeof paths });
});

const operationOf = (name: string) => {
  const [method = '', path = ''] = name.split(' ');
  return paths[path]?.[method] as Operation;
};

/** The codes of an operation, by status. */
function codesOf({ responses }: Operation): Record<string, string[]> {
  const errors = Object.entries(responses).filter(([status]) => Number(status) >= 400);
  return Object.fromEntries(errors.map(([status, { content }]) => [status, Object.keys(content['application/json'].examples)]));
}

const UPLOAD = '/api/v1/panel/upload-file';
const UPLOAD_AVATAR = '/api/v1/panel/upload-avatar';
const CREATE_APPLICATION = '/api/v1/panel/create-application';

describe('the OpenAPI document', () => {
  it.each([
    [
      `post ${UPLOAD}`,
      {
        400: ['VALIDATION_ERROR', 'bad_request', 'invalid_file'],
        404: ['not_found'],
        408: ['upload_timeout'],
        409: ['file_name_taken', 'file_in_use', 'idempotency_in_progress'],
        413: ['limit_exceeded'],
        415: ['VALIDATION_ERROR'],
        429: ['rate_limit_reached'],
      },
    ],
    [`post ${UPLOAD_AVATAR}`, { 408: ['upload_timeout'], 409: ['idempotency_in_progress'], 413: ['limit_exceeded'] }],
    ['post /api/v1/auth/sign-up', { 403: ['csrf_invalid', 'sign_up_closed'], 409: ['account_exists'] }],
    ['get /api/v1/auth/oidc/callback', { 401: ['unauth', 'two_factor_required'], 404: undefined, 409: ['account_exists'] }],
    ['post /api/v1/panel/api-keys', { 403: ['session_required', 'csrf_invalid', 'limit_exceeded'], 404: ['not_found'] }],
    ['get /api/v1/panel/audit-log', { 400: ['VALIDATION_ERROR', 'bad_request'], 404: undefined }],
    ['get /api/v1/panel/get-account-limits', { 400: undefined, 403: ['insufficient_scope'], 404: undefined }],
    [
      `post ${CREATE_APPLICATION}`,
      {
        403: ['insufficient_scope', 'csrf_invalid', 'application_forbidden'],
        404: undefined,
        413: ['VALIDATION_ERROR', 'limit_exceeded'],
      },
    ],
  ])('has the codes of %s, the likeliest first', (name, expected) => {
    const codes = codesOf(operationOf(name));
    for (const [status, those] of Object.entries(expected)) expect(codes[status], status).toEqual(those);
  });

  it('has the headers of responses, and the lengths of inputs', () => {
    const { responses } = operationOf('get /api/v1/auth/oidc/start');
    expect(responses[302]).toMatchObject({ headers: { Location: { schema: { format: 'uri' } } } });
    expect(Object.keys(operationOf(`post ${CREATE_APPLICATION}`).responses[200]?.headers ?? {})).toEqual([
      'Location',
      'Idempotency-Replayed',
    ]);
    expect(Object.keys(responses[429]?.headers ?? {})).toEqual(['Retry-After', 'RateLimit', 'RateLimit-Policy']);
    expect(Object.keys(responses[503]?.headers ?? {})).toEqual(['Retry-After']);
    const properties = { email: { minLength: 1, maxLength: 254 }, password: { minLength: 1, maxLength: 128 } };
    expect(operationOf('post /api/v1/auth/sign-in').requestBody).toMatchObject({
      content: { 'application/json': { schema: { properties } } },
    });
  });
});
