import { z } from 'zod';
import { component, defineRoute, type RouteContext } from '../routing/route.ts';

const amount = component('AccountLimit', {
  currentValue: z.int().meta({ examples: [3] }),
  maxValue: z.nullable(z.int()).meta({ description: 'null: unlimited.', examples: [100] }),
});

const PLAN_NAME = 'Self-hosted';

export const accountLimitsRoutes = ({ clients: { apiKeys, applications, files } }: RouteContext) => ({
  getAccountLimits: defineRoute('GET /api/v1/panel/get-account-limits', 'account:read', {
    summary: 'Get the limits of the account',
    description: [
      'What the account uses now, and its limits. Storage is the charged size of its files: of each its whole MiB, rounded down, at least 1.',
      'API keys count unless they are revoked or expired.',
    ].join(' '),
    data: component('AccountLimits', {
      planName: z.string(),
      storageSizeMib: amount,
      uploadedFilesCount: amount,
      createdApplicationsCount: amount,
      apiKeyCount: amount,
      fileSizeMiB: z.int().meta({ description: 'Largest file, in MiB.', examples: [150] }),
    }),
    message: 'Successfully fetched account limits',
    handle: async ({ principal: { accountId } }) => {
      const [ofFiles, ofApplications, ofApiKeys] = await Promise.all([
        files.getStorageUsage({ accountId }),
        applications.getApplicationUsage({ accountId }),
        apiKeys.getApiKeyUsage({ accountId }),
      ]);
      return {
        planName: PLAN_NAME,
        storageSizeMib: { currentValue: ofFiles.chargedMib, maxValue: ofFiles.chargedMibMax },
        uploadedFilesCount: { currentValue: ofFiles.fileCount, maxValue: ofFiles.fileCountMax },
        createdApplicationsCount: { currentValue: ofApplications.applicationCount, maxValue: ofApplications.applicationCountMax },
        apiKeyCount: { currentValue: ofApiKeys.activeCount, maxValue: ofApiKeys.activeCountMax },
        fileSizeMiB: ofFiles.fileSizeMibMax,
      };
    },
  }),
});
