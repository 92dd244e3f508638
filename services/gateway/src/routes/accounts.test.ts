import { Code, ConnectError } from '@connectrpc/connect';
import { commonErrors, defineErrors, toConnectError } from '@latchkey/kit/errors/errors';
import { describe, expect, it } from 'vitest';
import { readGatewayConfig } from '../config.ts';
import { ACCOUNT, SESSION, startTestGateway, type TestGatewayOptions, toKey } from '../testing/test-gateway.ts';

/** Sends the same request some times to a gateway of its own. */
async function repeat(times: number, options: TestGatewayOptions, path: string, init: RequestInit = {}): Promise<Response[]> {
  const gateway = await startTestGateway(options);
  const responses: Response[] = [];
  for (let i = 0; i < times; i += 1) responses.push(await fetch(gateway.baseUrl + path, init));
  await gateway.service.stop();
  return responses;
}

const signIn = (times: number, options: TestGatewayOptions) =>
  repeat(times, options, '/api/v1/auth/sign-in', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email: 'ada@example.com', password: 'a long passphrase' }),
  });

describe('the session cookie', () => {
  it.each([
    ['https://panel.example.com', true],
    ['http://panel.example.com', true],
    ['http://localhost.example.com', true],
    ['http://127.0.0.1.example.com', true],
    ['https://localhost', true],
    ['http://localhost:1234', false],
    ['http://127.9.9.9:80', false],
    ['http://[::1]:8080', false],
    ['', false],
  ])('of an instance at %j is for HTTPS alone: %s', async (PUBLIC_URL, isSecure) => {
    const accounts = { signIn: async () => ({ account: ACCOUNT, session: SESSION }) };
    const [response] = await signIn(1, { env: { PUBLIC_URL }, accounts });
    const attributes = response?.headers.get('set-cookie')?.split('; ') ?? [];
    expect(attributes).toEqual(expect.arrayContaining(['session=a-token', 'HttpOnly', 'SameSite=Lax', 'Path=/']));
    expect(attributes.includes('Secure')).toBe(isSecure);
  });
});

describe('the limit of failed sign-ins', () => {
  const { sign_in_failed } = defineErrors({ sign_in_failed: { kind: 'unauthenticated', message: 'Wrong' } });

  it.each([
    [
      'counts wrong passwords, and leaves each network one more attempt',
      toConnectError(sign_in_failed()),
      [401, 401, 401, 401, 429, 429],
    ],
    ['counts no unavailable service', commonErrors.dependency_unavailable(), Array(5).fill(503)],
    ['counts no defect', new Error('a defect'), Array(5).fill(500)],
  ])('%s', async (_, err, expected) => {
    const env = { SIGN_IN_FAILURES_PER_15_MINUTES: '3' };
    const responses = await signIn(expected.length, { env, accounts: { signIn: async () => Promise.reject(err) } });
    expect(responses.map(({ status }) => status)).toEqual(expected);
  });
});

describe('the limits of an account', () => {
  const services: TestGatewayOptions = {
    authentication: { authenticate: async () => toKey(['account:read']) },
    files: { getStorageUsage: async () => ({ chargedMib: 3n, chargedMibMax: 1_024n, fileCount: 2n, fileCountMax: 100n }) },
    applications: { getApplicationUsage: async () => ({ applicationCount: 5n }) },
    apiKeys: { getApiKeyUsage: async () => ({ activeCount: 1n, activeCountMax: 0n }) },
  };
  const get = async (options: TestGatewayOptions) => {
    const [response] = await repeat(1, options, '/api/v1/panel/get-account-limits', { headers: { authorization: 'Bearer a' } });
    return [response?.status, await response?.json()];
  };

  it('are those of each service, with null for unlimited, and the plan of the settings', async () => {
    const data = {
      planName: 'Größer',
      storageSizeMib: { currentValue: 3, maxValue: 1_024 },
      uploadedFilesCount: { currentValue: 2, maxValue: 100 },
      createdApplicationsCount: { currentValue: 5, maxValue: null },
      apiKeyCount: { currentValue: 1, maxValue: 0 },
    };
    expect(await get({ ...services, env: { PLAN_NAME: ' Größer ' } })).toMatchObject([200, { data }]);
  });

  it('are not returned in part', async () => {
    const getApiKeyUsage = async () => Promise.reject(new ConnectError('away', Code.Unavailable));
    expect(await get({ ...services, apiKeys: { getApiKeyUsage } })).toMatchObject([503, { code: 'INTERNAL_ERROR' }]);
  });

  it.each(['a'.repeat(65), ' ', 'a\0b'])('have no plan named %j', (PLAN_NAME) => {
    const read = () => readGatewayConfig({ REDIS_URL: 'redis://localhost', PLAN_NAME });
    expect(read).toThrow('PLAN_NAME must have 1 to 64 characters');
  });
});
