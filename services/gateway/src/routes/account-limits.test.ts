import { Code, ConnectError } from '@connectrpc/connect';
import { expect, it } from 'vitest';
import { toKey, useTestGateway } from '../testing/test-gateway.ts';

let isAway = false;
const gateway = useTestGateway({
  authentication: { authenticate: async () => toKey(['account:read']) },
  files: {
    getStorageUsage: async () => ({
      chargedMib: 3n,
      chargedMibMax: 1_024n,
      fileCount: 2n,
      fileCountMax: 100n,
      fileSizeMibMax: 150n,
    }),
  },
  applications: { getApplicationUsage: async () => ({ applicationCount: 5n }) },
  apiKeys: {
    getApiKeyUsage: async () => {
      if (isAway) throw new ConnectError('away', Code.Unavailable);
      return { activeCount: 1n, activeCountMax: 0n };
    },
  },
});
const get = () => gateway.send('GET', '/api/v1/panel/get-account-limits', { headers: { authorization: 'Bearer a' } });

it('the limits of an account are those of each service, with null for unlimited, and never returned in part', async () => {
  expect((await get()).envelope.data).toEqual({
    planName: 'Self-hosted',
    storageSizeMib: { currentValue: 3, maxValue: 1_024 },
    uploadedFilesCount: { currentValue: 2, maxValue: 100 },
    createdApplicationsCount: { currentValue: 5, maxValue: null },
    apiKeyCount: { currentValue: 1, maxValue: 0 },
    fileSizeMiB: 150,
  });
  isAway = true;
  expect((await get()).outcome).toBe('503 INTERNAL_ERROR');
});
