import { randomUUID } from 'node:crypto';
import { Code, ConnectError } from '@connectrpc/connect';
import { PrincipalKind } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { testRedis } from '@latchkey/testkit/redis';
import { describe, expect, it } from 'vitest';
import { readGatewayConfig } from '../config.ts';
import { type FakeServices, startTestGateway } from '../testing/test-gateway.ts';

const ACCOUNT_ID = randomUUID();

const SERVICES: FakeServices = {
  files: { getStorageUsage: async () => ({ chargedMib: 3n, chargedMibMax: 1_024n, fileCount: 2n, fileCountMax: 100n }) },
  applications: { getApplicationUsage: async () => ({ applicationCount: 5n }) },
  apiKeys: { getApiKeyUsage: async () => ({ activeCount: 1n, activeCountMax: 0n }) },
};

/** What a key with a scope is answered. */
async function getLimits({ services = SERVICES, env = {}, scopes = ['account:read'] } = {}) {
  const { url: redisUrl } = await testRedis();
  const principal = { kind: PrincipalKind.API_KEY, accountId: ACCOUNT_ID, username: 'ada', credentialId: randomUUID(), scopes };
  const authentication = { authenticate: async () => ({ principal }) };
  const gateway = await startTestGateway({ redisUrl, env, authentication, ...services });
  try {
    const headers = { authorization: 'Bearer a-key' };
    const response = await fetch(`${gateway.baseUrl}/api/v1/panel/get-account-limits`, { headers });
    const body = (await response.json()) as { code?: string; data?: object };
    return { outcome: `${response.status} ${body.code ?? ''}`.trim(), data: body.data };
  } finally {
    await gateway.service.stop();
  }
}

describe('the limits of an account', () => {
  it('are what each service says, with null for what has none', async () => {
    const { outcome, data } = await getLimits();
    expect(outcome).toBe('200');
    expect(data).toEqual({
      planName: 'Self-hosted',
      storageSizeMib: { currentValue: 3, maxValue: 1_024 },
      uploadedFilesCount: { currentValue: 2, maxValue: 100 },
      createdApplicationsCount: { currentValue: 5, maxValue: null },
      apiKeyCount: { currentValue: 1, maxValue: 0 },
    });
  });

  it('are shown to keys with the scope alone', async () => {
    const scopes = ['applications:read', 'files:read'];
    expect((await getLimits({ scopes })).outcome).toBe('403 insufficient_scope');
  });

  it('are not answered in part', async () => {
    const away = async () => {
      throw new ConnectError('away', Code.Unavailable);
    };
    const services = { ...SERVICES, apiKeys: { getApiKeyUsage: away } };
    expect((await getLimits({ services })).outcome).toBe('503 INTERNAL_ERROR');
  });
});

describe('the name of the plan', () => {
  it('is a setting', async () => {
    const { data } = await getLimits({ env: { PLAN_NAME: ' Größer ' } });
    expect(data).toMatchObject({ planName: 'Größer' });
  });

  it.each(['a'.repeat(65), ' ', 'a\0b'])('is refused as %o', (PLAN_NAME) => {
    expect(() => readGatewayConfig({ REDIS_URL: 'redis://localhost', PLAN_NAME })).toThrow(
      'PLAN_NAME must have 1 to 64 characters',
    );
  });
});
