import { randomUUID } from 'node:crypto';
import type { HandlerContext } from '@connectrpc/connect';
import { createErrors } from '@latchkey/kit/errors/error-catalogue';
import { commonErrors, toConnectError } from '@latchkey/kit/errors/errors';
import { type ApiKeyError, ApiKeyErrorSchema } from '@latchkey/proto/latchkey/identity/v1/api_key_pb';
import { PrincipalKind } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { beforeEach, describe, expect, it } from 'vitest';
import { ACCOUNT, SESSION, toKey, useTestGateway } from '../testing/test-gateway.ts';

const [OWNED, RESTRICTED] = [randomUUID(), randomUUID()];
const [KEY_ID, SESSION_ID] = [randomUUID(), randomUUID()];
const { api_key_not_found } = createErrors<typeof ApiKeyError>(ApiKeyErrorSchema);
const SCOPES = ['applications:read', 'applications:update', 'files:upload', 'files:read', 'files:delete', 'account:read'];

/** The actor header of each call that a service got, by the name of the method. */
let actors: Record<string, string | null> = {};
let isCreated = true;
let isOutcomeLost = false;
beforeEach(() => {
  actors = {};
  isCreated = true;
});
const record =
  (name: string, response: object = {}) =>
  async (_request: object, { requestHeader }: HandlerContext) => {
    actors[name] = requestHeader.get('x-latchkey-actor');
    return response;
  };

const gateway = useTestGateway({
  env: { TRUSTED_PROXIES: 'loopback', API_KEYS_CREATED_PER_HOUR: '1' },
  accounts: { signIn: record('signIn', { account: ACCOUNT, session: SESSION }) },
  apiKeys: {
    createApiKey: async () => {
      if (!isCreated) throw new Error('not created');
      return { apiKey: {}, plaintextKey: 'key' };
    },
    revokeApiKey: () => Promise.reject(toConnectError(api_key_not_found())),
  },
  applications: {
    getApplicationSettings: record('getApplicationSettings', { settings: { version: '1', status: 1 } }),
    updateApplicationSetting: async (request, context) => {
      if (isOutcomeLost) throw commonErrors.outcome_unknown();
      return record('updateApplicationSetting')(request, context);
    },
    listLicenseLevels: record('listLicenseLevels'),
    replaceLicenseLevels: record('replaceLicenseLevels'),
    rotateRuntimeKey: record('rotateRuntimeKey'),
    findOwnedApplications: async ({ applicationIds }) => ({
      applicationIds: applicationIds.filter((id) => id === OWNED || id === RESTRICTED),
    }),
  },
  files: {
    checkFileName: record('checkFileName'),
    getFilesMetadata: record('getFilesMetadata', { totalFiles: 0n }),
    listFiles: record('listFiles'),
    deleteFile: record('deleteFile'),
    getStorageUsage: async () => ({ chargedMib: 3n, chargedMibMax: 1_024n, fileCount: 2n, fileCountMax: 100n }),
  },
  authentication: {
    authenticate: async ({ credential: { case: kind, value } }, { requestHeader }) => {
      actors.authenticate = requestHeader.get('x-latchkey-actor');
      if (value === 'lost') throw commonErrors.outcome_unknown();
      isOutcomeLost = value === 'changing';
      if (kind === 'apiKey')
        return toKey(value === 'reader' ? ['files:read'] : SCOPES, { credentialId: KEY_ID, ...RESTRICTIONS[value] });
      const accountId = value === 'failing' ? OWNED : ACCOUNT.id;
      return {
        principal: { kind: PrincipalKind.SESSION, accountId, credentialId: SESSION_ID, csrfToken: 'csrf', allApplications: true },
      };
    },
  },
});
const RESTRICTIONS: Readonly<Record<string, object>> = { restricted: { allApplications: false, applicationIds: [OWNED] } };

const asKey = (key: string) => ({ authorization: `Bearer ${key}` });
const AS_SESSION = { cookie: 'session=a', 'x-csrf-token': 'csrf' };
const change = (headers: Record<string, string>, applicationId = OWNED) => {
  const body = { field: 'applicationUserRequiresLicense', value: true };
  return gateway.send('PATCH', `/api/v1/panel/update-application-settings?applicationId=${applicationId}`, { headers, body });
};

describe('a call to a service', () => {
  it.each([
    ['the key, with the address of the connection', asKey('a'), `api_key ${KEY_ID} 127.0.0.1`],
    [
      'the session, behind a trusted proxy',
      { ...AS_SESSION, 'x-forwarded-for': '2001:db8::1' },
      `session ${SESSION_ID} 2001:db8::1`,
    ],
    ['no address that a proxy forwards wrongly', { ...asKey('a'), 'x-forwarded-for': 'unknown' }, `api_key ${KEY_ID} 127.0.0.1`],
    [
      'no actor that the client claims',
      { ...asKey('a'), 'x-latchkey-actor': `session ${SESSION_ID} 203.0.113.99` },
      `api_key ${KEY_ID} 127.0.0.1`,
    ],
  ])('that changes something names %s', async (_, headers, actor) => {
    expect((await change(headers)).status).toBe(200);
    expect(actors).toEqual({ authenticate: null, updateApplicationSetting: actor });
  });

  it('names an anonymous address on public routes, and nothing in a read', async () => {
    const body = { email: 'ada@example.com', password: 'a long passphrase' };
    await gateway.send('POST', '/api/v1/auth/sign-in', { body, headers: AS_SESSION });
    await gateway.send('GET', `/api/v1/panel/get-application-settings?applicationId=${OWNED}`, { headers: asKey('a') });
    expect(actors).toEqual({ signIn: 'anonymous - 127.0.0.1', authenticate: null, getApplicationSettings: null });
  });
});

describe('a request without a good credential', () => {
  const NONE = 'No API key and no session. Send an API key as Authorization: Bearer <key>, or sign in';
  const MALFORMED = 'The API key is not valid. Send a valid one as Authorization: Bearer <key>';
  const SETTINGS = `/api/v1/panel/get-application-settings?applicationId=${OWNED}`;

  it.each([
    [SETTINGS, {}, '401 api_key_invalid', NONE],
    [SETTINGS, { cookie: 'other=1' }, '401 api_key_invalid', NONE],
    ['/api/v1/auth/session', {}, '401 unauth', 'No session. Sign in first'],
    [SETTINGS, { authorization: 'Basic a' }, '401 api_key_invalid', MALFORMED],
    ['/api/v1/auth/session', { authorization: 'x' }, '401 api_key_invalid', MALFORMED],
    ['/api/v1/auth/session', asKey('a'), '403 session_required', 'This route needs a dashboard session'],
    [SETTINGS, asKey('reader'), '403 insufficient_scope', 'The API key lacks the scope for this route'],
  ] as const)('to %s with %j gets %s', async (path, headers, outcome, message) => {
    const response = await gateway.send('GET', path, { headers });
    expect([response.outcome, response.envelope]).toEqual([outcome, { success: false, code: outcome.slice(4), message }]);
  });
});

describe('a route of an application', () => {
  it.each([
    ['GET', 'get-application-settings', undefined],
    ['PATCH', 'update-application-settings', { field: 'version', value: '2' }],
    ['GET', 'get-application-license-levels', undefined],
    ['POST', 'create-application-license-levels', { levels: ['a'] }],
    ['PATCH', 'update-api-keys', { type: 'httpKey' }],
    ['POST', 'check-file-name', { fileName: 'a' }],
    ['GET', 'get-files-metadata', undefined],
    ['GET', 'get-files-table', undefined],
    ['POST', 'file-action', { action: 'delete_file', fileId: randomUUID() }],
    ['POST', 'file-action', { action: 'change_file_name', fileId: randomUUID() }],
  ])('hides others from a restricted key, after the schema and before the action: %s %s %j', async (method, name, body) => {
    const as = async (applicationId: string, given: unknown = body) => {
      const path = `/api/v1/panel/${name}?applicationId=${encodeURIComponent(applicationId)}`;
      return (await gateway.send(method, path, { headers: asKey('restricted'), ...(given !== undefined && { body: given }) }))
        .outcome;
    };
    expect(await as(RESTRICTED)).toBe('403 application_forbidden');
    expect(await as(randomUUID())).toBe('404 not_found');
    expect(await as('no id')).toBe('404 not_found');
    if (body) expect(await as(RESTRICTED, {})).toBe('400 VALIDATION_ERROR');
    expect(actors).toEqual({ authenticate: null });
    const isRename = Object.values(body ?? {}).includes('change_file_name');
    expect(await as(OWNED.toUpperCase())).toBe(isRename ? '400 bad_request' : '200');
  });
});

describe('a route without a body', () => {
  it.each([
    [undefined, 404],
    [{}, 404],
    [null, 400],
    [[], 400],
    [{ a: 1 }, 400],
  ])('gets %j: %i', async (body, status) => {
    const headers = { ...AS_SESSION, ...(body !== undefined && { 'content-type': 'application/json' }) };
    const text = body === undefined ? null : JSON.stringify(body);
    const response = await fetch(`${gateway.baseUrl}/api/v1/panel/api-keys/x/revoke`, { method: 'POST', headers, body: text });
    expect(response.status).toBe(status);
  });
});

describe('a call whose outcome is unknown', () => {
  it.each([
    ['is that of a change', 'changing', '503 outcome_unknown'],
    ['changed nothing where it only authenticates', 'lost', '503 INTERNAL_ERROR'],
  ])('%s', async (_what, key, outcome) => {
    expect((await change(asKey(key))).outcome).toBe(outcome);
  });
});

describe('the limit of a route', () => {
  const create = async (headers: Record<string, string> = {}, session = 'a') => {
    const body = { name: 'Key', scopes: ['files:read'], allApplications: true };
    const given = { cookie: `session=${session}`, 'x-csrf-token': 'csrf', ...headers };
    return (await gateway.send('POST', '/api/v1/panel/api-keys', { headers: given, body })).outcome;
  };

  it('counts neither failed requests nor those of pages of another origin', async () => {
    expect(await create({ origin: 'https://evil.test' }, 'failing')).toBe('403 csrf_invalid');
    isCreated = false;
    for (let i = 0; i < 3; i += 1) expect(await create({}, 'failing')).toBe('500 INTERNAL_ERROR');
    isCreated = true;
    expect(await create({}, 'failing')).toBe('200');
    expect(await create({}, 'failing')).toBe('429 rate_limit_reached');
    expect(await create()).toBe('200');
  });
});
