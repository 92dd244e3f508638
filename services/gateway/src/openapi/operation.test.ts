import { testRedis } from '@latchkey/testkit/redis';
import { beforeAll, describe, expect, it } from 'vitest';
import { startTestGateway } from '../testing/test-gateway.ts';

interface Operation {
  readonly requestBody: unknown;
  readonly parameters: ReadonlyArray<{ readonly in: string; readonly name: string; readonly required?: boolean }>;
  readonly responses: Record<string, { headers?: object; content: { 'application/json': { schema: object; examples: object } } }>;
}

let paths: Record<string, Record<string, Operation>>;
beforeAll(async () => {
  const gateway = await startTestGateway({ redisUrl: (await testRedis()).url });
  ({ paths } = (await (await fetch(`${gateway.baseUrl}/openapi.json`)).json()) as { paths: typeof paths });
  await gateway.service.stop();
});

const UPLOAD = '/api/v1/panel/upload-file';
const UPLOAD_AVATAR = '/api/v1/panel/upload-avatar';
const AVATAR = '/api/v1/panel/avatar';

/** The codes of an operation, by status. */
function codesOf({ responses }: Operation): Record<string, string[]> {
  const failures = Object.entries(responses).filter(([status]) => Number(status) >= 400);
  return Object.fromEntries(failures.map(([status, { content }]) => [status, Object.keys(content['application/json'].examples)]));
}

describe('the document of upload-file', () => {
  it('says that the body is bytes, and that a digest may be given', () => {
    const { requestBody, parameters } = (paths[UPLOAD] as Record<'post', Operation>).post;
    expect(requestBody).toMatchObject({
      content: { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } },
    });
    expect(parameters.map(({ in: where, name, required = false }) => `${where} ${name} ${required}`)).toEqual([
      'query applicationId true',
      'query fileName true',
      'header content-digest false',
    ]);
  });

  it('says what it may answer, and nothing that it can not', () => {
    expect(codesOf(paths[UPLOAD]?.post as Operation)).toMatchObject({
      400: ['VALIDATION_ERROR', 'bad_request', 'invalid_file'],
      404: ['not_found'],
      408: ['upload_timeout'],
      409: ['file_name_taken'],
      413: ['limit_exceeded'],
      415: ['VALIDATION_ERROR'],
      429: ['rate_limit_reached'],
    });
  });
});

describe('the document of avatars', () => {
  it('says what an upload may answer, and nothing that it can not', () => {
    const codes = codesOf(paths[UPLOAD_AVATAR]?.post as Operation);
    expect(codes).toMatchObject({
      400: ['VALIDATION_ERROR', 'bad_request', 'invalid_file'],
      408: ['upload_timeout'],
      413: ['limit_exceeded'],
      415: ['VALIDATION_ERROR'],
    });
    expect(codes[409]).toBeUndefined();
  });

  it('says that the image is bytes of its type, and that there may be nothing to send', () => {
    const { responses } = (paths[AVATAR] as Record<'get', Operation>).get;
    expect(responses['200']).toMatchObject({ content: { 'image/webp': { schema: { type: 'string', format: 'binary' } } } });
    expect(responses['304']).not.toHaveProperty('content');
    expect(codesOf(paths[AVATAR]?.get as Operation)).toMatchObject({ 404: ['not_found'] });
  });
});

describe('the document of every other route', () => {
  it.each([
    ['post /api/v1/auth/sign-in', { 401: ['unauth', 'two_factor_required'], 403: ['csrf_invalid'] }],
    ['post /api/v1/auth/sign-up', { 403: ['csrf_invalid', 'sign_up_closed'], 409: ['account_exists'] }],
    ['get /api/v1/auth/session', { 403: ['session_required'] }],
    ['post /api/v1/auth/two-factor/enable', { 403: ['session_required', 'csrf_invalid'], 404: undefined }],
    ['post /api/v1/auth/two-factor/disable', { 403: ['session_required', 'csrf_invalid'], 404: undefined }],
    [
      'get /api/v1/auth/oidc/callback',
      {
        401: ['unauth', 'two_factor_required'],
        403: ['csrf_invalid', 'sign_up_closed', 'email_not_verified'],
        404: undefined,
        409: ['account_exists'],
      },
    ],
    ['get /api/v1/auth/oidc/callback/{issuer}', { 401: ['unauth', 'two_factor_required'], 404: undefined }],
    ['post /api/v1/auth/oidc/link', { 401: expect.arrayContaining(['unauth', 'two_factor_required']), 404: ['not_found'] }],
    ['post /api/v1/panel/api-keys', { 403: ['session_required', 'csrf_invalid', 'limit_exceeded'], 404: ['not_found'] }],
    ['get /api/v1/panel/audit-log', { 400: ['VALIDATION_ERROR', 'bad_request'], 403: ['session_required'], 404: undefined }],
    ['get /api/v1/panel/get-account-limits', { 400: undefined, 403: ['insufficient_scope'], 404: undefined }],
    ['get /api/v1/panel/get-applications', { 403: ['insufficient_scope'], 404: undefined }],
    [
      'post /api/v1/panel/create-application',
      {
        403: ['insufficient_scope', 'csrf_invalid', 'application_forbidden'],
        404: undefined,
        413: ['VALIDATION_ERROR', 'limit_exceeded'],
      },
    ],
    [
      'delete /api/v1/panel/delete-application',
      { 403: ['insufficient_scope', 'csrf_invalid', 'application_forbidden'], 404: ['not_found'] },
    ],
  ])('says which codes come with %s, the likeliest first', (name, expected) => {
    const [method = '', path = ''] = name.split(' ');
    const codes = codesOf(paths[path]?.[method] as Operation);
    for (const [status, those] of Object.entries(expected)) expect(codes[status], status).toEqual(those);
  });

  it('says which headers come with a redirect, and with what may be tried again', () => {
    const { responses } = (paths['/api/v1/auth/oidc/start'] as Record<'get', Operation>).get;
    expect(responses[302]).toMatchObject({ headers: { Location: { schema: { format: 'uri' } } } });
    const created = (paths[CREATE_APPLICATION] as Record<'post', Operation>).post.responses[200];
    expect(created).toMatchObject({
      headers: { Location: { description: expect.stringContaining('get-application-settings') } },
    });
    for (const status of [429, 503]) expect(responses[status]).toMatchObject({ headers: { 'Retry-After': expect.any(Object) } });
    expect(Object.keys(responses[429]?.headers ?? {})).toEqual(['Retry-After', 'RateLimit', 'RateLimit-Policy']);
    expect(responses[500]).not.toHaveProperty('headers');
    expect(JSON.stringify(responses[429]?.content)).not.toContain('Retry-After":');
  });

  it('says that nobody signs in with nothing', () => {
    const { requestBody } = (paths['/api/v1/auth/sign-in'] as Record<'post', Operation>).post;
    const properties = { email: { minLength: 1, maxLength: 254 }, password: { minLength: 1, maxLength: 128 } };
    expect(requestBody).toMatchObject({ content: { 'application/json': { schema: { properties } } } });
  });
});

/** An account may have as many applications as is set. */
const CREATE_APPLICATION = '/api/v1/panel/create-application';

it('no other document says what only an upload may answer', () => {
  const others = Object.entries(paths).filter(([path]) => path !== UPLOAD && path !== UPLOAD_AVATAR);
  expect(others.length).toBeGreaterThan(10);
  for (const [path, operations] of others) {
    for (const operation of Object.values(operations)) {
      const codes = codesOf(operation);
      expect(codes[408], path).toBeUndefined();
      expect(codes[400] ?? [], path).not.toContain('invalid_file');
      const tooLarge = path === CREATE_APPLICATION ? ['VALIDATION_ERROR', 'limit_exceeded'] : ['VALIDATION_ERROR'];
      expect(codes[413] ?? tooLarge, path).toEqual(tooLarge);
      expect(codes[409] ?? [], path).not.toEqual(expect.arrayContaining(['account_exists', 'file_name_taken']));
    }
  }
});
