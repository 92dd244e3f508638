import { ApplicationStatus, RuntimeKeyType } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { z } from 'zod';
import type { Clients } from '../clients.ts';
import { setLimitHeaders } from '../limit/headers.ts';
import { tighter } from '../limit/limit.ts';
import { defineRoute, type Route } from '../route/route.ts';
import { withApplication } from './application-access.ts';
import { applicationQuery } from './schemas.ts';

const HOUR_MS = 3_600_000;

const TAG = 'Application settings';

/** Where the settings of an application are. */
export const SETTINGS_URL = '/api/v1/panel/get-application-settings';

const FIELDS = [
  'applicationLicenseRequiresClientId',
  'applicationUserRequiresClientId',
  'applicationUserRequiresLicense',
  'version',
  'status',
] as const;

const settings = z
  .object({
    applicationLicenseRequiresClientId: z.boolean(),
    applicationUserRequiresClientId: z.boolean(),
    applicationUserRequiresLicense: z.boolean(),
    version: z.string().meta({ examples: ['1.0'] }),
    status: z.enum(['online', 'paused']),
  })
  .meta({ id: 'ApplicationSettings' });

/** Settings and runtime keys of an application (specification 4.1). */
export function applicationSettingRoutes(clients: Clients): Route[] {
  return [
    defineRoute({
      method: 'GET',
      url: SETTINGS_URL,
      operationId: 'getApplicationSettings',
      access: 'applications:read',
      tag: TAG,
      summary: 'Get the settings of an application',
      query: applicationQuery,
      data: settings,
      message: 'Successfully fetched application settings',
      handle: (request) =>
        withApplication(clients, request, request.query.applicationId, async (ref) => {
          const { settings: found } = await clients.applications.getApplicationSettings(ref, request.call);
          return {
            applicationLicenseRequiresClientId: found?.licenseRequiresClientId,
            applicationUserRequiresClientId: found?.userRequiresClientId,
            applicationUserRequiresLicense: found?.userRequiresLicense,
            version: found?.version,
            status: found?.status === ApplicationStatus.PAUSED ? 'paused' : 'online',
          };
        }),
    }),
    defineRoute({
      method: 'PATCH',
      url: '/api/v1/panel/update-application-settings',
      operationId: 'updateApplicationSettings',
      access: 'applications:update',
      tag: TAG,
      summary: 'Set one setting of an application',
      description:
        '`value` is a boolean for the three Requires fields, text of 1 to 64 characters for `version`, and `online` or `paused` for `status`. Live clients hear of a new `version` and a new `status`; setting the value that is there changes nothing, and nobody hears of it.',
      query: applicationQuery,
      body: z.strictObject({ field: z.enum(FIELDS), value: z.union([z.boolean(), z.string()]) }),
      examples: {
        pause: { field: 'status', value: 'paused' },
        version: { field: 'version', value: '1.1' },
        requireClientId: { field: 'applicationLicenseRequiresClientId', value: true },
      },
      message: 'Successfully update application settings',
      handle: (request) =>
        withApplication(clients, request, request.query.applicationId, async (ref) => {
          const { field, value } = request.body;
          const typed =
            typeof value === 'boolean' ? { case: 'boolValue' as const, value } : { case: 'stringValue' as const, value };
          await clients.applications.updateApplicationSetting({ ...ref, field, value: typed }, request.call);
        }),
    }),
    defineRoute({
      method: 'PATCH',
      url: '/api/v1/panel/update-api-keys',
      operationId: 'rotateRuntimeKey',
      access: 'applications:update',
      tag: TAG,
      summary: 'Rotate a runtime key of an application',
      description:
        'The old key is refused from then on, and connections opened with an old socket key are closed. Two rotations an hour for each application, both types together.',
      query: applicationQuery,
      body: z.strictObject({ type: z.enum(['socketKey', 'httpKey']) }),
      examples: { socketKey: { type: 'socketKey' }, httpKey: { type: 'httpKey' } },
      message: 'Successfully update api key',
      handle: (request) =>
        withApplication(clients, request, request.query.applicationId, async (ref) => {
          const type = request.body.type === 'socketKey' ? RuntimeKeyType.SOCKET : RuntimeKeyType.HTTP;
          const rotated = await clients.applications.rotateRuntimeKey({ ...ref, type }, request.call);
          const limit = { name: 'rotations', max: rotated.rotationsMax, windowMs: HOUR_MS };
          const rotations = { limit, allowed: true, remaining: rotated.rotationsLeft, resetMs: rotated.resetSeconds * 1000 };
          setLimitHeaders(request.reply, tighter(request.standing, rotations));
        }),
    }),
  ];
}
