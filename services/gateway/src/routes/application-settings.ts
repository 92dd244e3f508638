import {
  ApplicationService,
  type ApplicationSettings,
  ApplicationSettingsSchema,
  ApplicationStatus,
  RuntimeKeyType,
} from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { z } from 'zod';
import { setLimitHeaders, tighter, toLimitState } from '../rate-limit/rate-limits.ts';
import { defineRoute, type RouteContext } from '../routing/route.ts';
import { trimmedText } from '../routing/schemas.ts';

const HOUR_MS = 3_600_000;

export const SETTINGS_URL = '/api/v1/panel/get-application-settings';

/** Each setting by its name in this interface: its field of the protocol, and its schema. */
const SETTINGS = {
  applicationLicenseRequiresClientId: { field: 'licenseRequiresClientId', schema: z.boolean() },
  applicationUserRequiresClientId: { field: 'userRequiresClientId', schema: z.boolean() },
  applicationUserRequiresLicense: { field: 'userRequiresLicense', schema: z.boolean() },
  version: { field: 'version', schema: z.string().meta({ examples: ['1.0'] }) },
  status: { field: 'status', schema: z.enum(['online', 'paused']) },
} as const satisfies Readonly<Record<string, { field: keyof typeof ApplicationSettingsSchema.field; schema: z.ZodType }>>;

const NAMES = Object.keys(SETTINGS) as Array<keyof typeof SETTINGS>;

const settings = z
  .object(Object.fromEntries(Object.entries(SETTINGS).map(([name, { schema }]) => [name, schema])))
  .meta({ id: 'ApplicationSettings' });

const fieldNameOf = (name: keyof typeof SETTINGS) => ApplicationSettingsSchema.field[SETTINGS[name].field].name;

/** The name in this interface of a setting of the protocol. Other names are returned unchanged. */
export function toSettingName(fieldName: unknown): unknown {
  return NAMES.find((name) => fieldNameOf(name) === fieldName) ?? fieldName;
}

function toJson(found: ApplicationSettings): object {
  const values = { ...found, status: found.status === ApplicationStatus.PAUSED ? 'paused' : 'online' };
  return Object.fromEntries(NAMES.map((name) => [name, values[SETTINGS[name].field]]));
}

export function applicationSettingRoutes({ clients: { applications } }: RouteContext) {
  return [
    defineRoute(`GET ${SETTINGS_URL}`, 'applications:read', {
      operationId: 'getApplicationSettings',
      application: 'query',
      summary: 'Get the settings of an application',
      data: settings,
      message: 'Successfully fetched application settings',
      failures: [ApplicationService.method.getApplicationSettings],
      handle: async ({ application }) => {
        const found = await applications.getApplicationSettings(application);
        return toJson(found.settings as ApplicationSettings);
      },
    }),
    defineRoute('PATCH /api/v1/panel/update-application-settings', 'applications:update', {
      operationId: 'updateApplicationSettings',
      application: 'query',
      summary: 'Set one setting of an application',
      description: [
        '`value` is a boolean for the three Requires fields, text of 1 to 64 characters for `version`, and `online` or `paused` for `status`.',
        'Live clients are notified of a new `version` and a new `status`. Setting the current value changes and notifies nothing.',
      ].join(' '),
      body: z.strictObject({ field: z.enum(NAMES), value: z.union([z.boolean(), z.string()]) }),
      examples: {
        pause: { field: 'status', value: 'paused' },
        version: { field: 'version', value: '1.1' },
        requireClientId: { field: 'applicationLicenseRequiresClientId', value: true },
      },
      message: 'Successfully update application settings',
      failures: [ApplicationService.method.updateApplicationSetting],
      handle: async ({ application, body: { field, value } }) => {
        const typed =
          typeof value === 'boolean' ? { case: 'boolValue' as const, value } : { case: 'stringValue' as const, value };
        await applications.updateApplicationSetting({ ...application, field: fieldNameOf(field), value: typed });
      },
    }),
    defineRoute('PATCH /api/v1/panel/update-api-keys', 'applications:update', {
      operationId: 'rotateRuntimeKey',
      application: 'query',
      summary: 'Rotate a runtime key of an application',
      description:
        'The old key is rejected from then on, and connections opened with an old socket key are closed. Two rotations an hour for each application, both types together.',
      body: z.strictObject({ type: z.enum(['socketKey', 'httpKey']) }),
      examples: { socketKey: { type: 'socketKey' }, httpKey: { type: 'httpKey' } },
      message: 'Successfully update api key',
      failures: [ApplicationService.method.rotateRuntimeKey],
      handle: async ({ application, body, limitState, reply }) => {
        const type = body.type === 'socketKey' ? RuntimeKeyType.SOCKET : RuntimeKeyType.HTTP;
        const { rotationsMax, rotationsLeft, resetSeconds } = await applications.rotateRuntimeKey({ ...application, type });
        const limit = { name: 'rotations', max: rotationsMax, windowMs: HOUR_MS };
        setLimitHeaders(reply, tighter(limitState, toLimitState(limit, rotationsMax - rotationsLeft, resetSeconds * 1_000)));
      },
    }),
  ];
}

const levels = z
  .array(trimmedText(1, 16, 'License level, 1 to 16 characters after trimming.'))
  .min(1)
  .refine((list) => new Set(list).size === list.length, 'must not have a level twice')
  .meta({ uniqueItems: true });

export function licenseLevelRoutes({ clients: { applications } }: RouteContext) {
  return [
    defineRoute('GET /api/v1/panel/get-application-license-levels', 'applications:read', {
      operationId: 'listLicenseLevels',
      application: 'query',
      summary: 'List the license levels of an application',
      data: z.array(z.string()).meta({ examples: [['Basic', 'Pro']] }),
      message: 'Successfully fetched application license levels',
      failures: [ApplicationService.method.listLicenseLevels],
      handle: async ({ application }) => (await applications.listLicenseLevels(application)).levels,
    }),
    defineRoute('POST /api/v1/panel/create-application-license-levels', 'applications:update', {
      operationId: 'saveLicenseLevels',
      application: 'query',
      summary: 'Replace the license levels of an application',
      description: 'Replaces the whole set atomically, in the order given.',
      body: z.strictObject({ levels }),
      examples: { levels: { levels: ['Basic', 'Pro'] } },
      message: 'License levels save successfully',
      failures: [ApplicationService.method.replaceLicenseLevels],
      handle: async ({ application, body }) => {
        await applications.replaceLicenseLevels({ ...application, levels: body.levels });
      },
    }),
  ];
}
