import { describeLength } from '@latchkey/contract/lengths';
import {
  APPLICATION_FLAGS,
  APPLICATION_TEXTS,
  FLAG_NAMES,
  mapSettings,
  STATUSES,
  TEXT_NAMES,
} from '@latchkey/contract/setting-definitions';
import {
  type ApplicationSettings,
  ApplicationSettingsSchema,
  ApplicationStatus,
} from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { z } from 'zod';
import { defineRoute, type RouteContext } from '../routing/route.ts';
import { ETAG_HEADER, ifMatchHeaders, trimmedText } from '../routing/schemas.ts';

export const SETTINGS_URL = '/api/v1/panel/get-application-settings';

/** Each setting by its name in this interface: its field of the protocol, and its schema. */
const SETTINGS = {
  ...mapSettings(APPLICATION_FLAGS, ({ field }) => ({ field, schema: z.boolean() })),
  ...mapSettings(APPLICATION_TEXTS, ({ field, initial }) => ({ field, schema: z.string().meta({ examples: [initial] }) })),
  status: { field: 'status', schema: z.enum(STATUSES) },
} as const satisfies Readonly<Record<string, { field: keyof typeof ApplicationSettingsSchema.field; schema: z.ZodType }>>;

const NAMES = Object.keys(SETTINGS) as Array<keyof typeof SETTINGS>;

const settings = z
  .object(Object.fromEntries(Object.entries(SETTINGS).map(([name, { schema }]) => [name, schema])))
  .meta({ id: 'ApplicationSettings' });

/** Each value by its field. The service rejects others with a separate error. */
const documentedChange = z.discriminatedUnion('field', [
  z.strictObject({ field: z.enum(FLAG_NAMES), value: z.boolean() }),
  ...TEXT_NAMES.map((name) => {
    const { length } = APPLICATION_TEXTS[name];
    return z.strictObject({
      field: z.literal(name),
      value: trimmedText(length, `${describeLength(length)} without control characters.`),
    });
  }),
  z.strictObject({ field: z.literal('status'), value: z.enum(STATUSES) }),
]);

const TEXTS = TEXT_NAMES.map((name) => `text of ${describeLength(APPLICATION_TEXTS[name].length)} for \`${name}\``);

const fieldNameOf = (name: keyof typeof SETTINGS) => ApplicationSettingsSchema.field[SETTINGS[name].field].name;

/** The name in this interface of a setting of the protocol. Other names are returned unchanged. */
export function toSettingName(fieldName: unknown): unknown {
  return NAMES.find((name) => fieldNameOf(name) === fieldName) ?? fieldName;
}

function toJson(found: ApplicationSettings): object {
  const values: Record<string, unknown> = {};
  for (const name of NAMES) values[name] = found[SETTINGS[name].field];
  values.status = found.status === ApplicationStatus.PAUSED ? 'paused' : 'online';
  return values;
}

export const applicationSettingRoutes = ({ clients: { applications } }: RouteContext) => ({
  getApplicationSettings: defineRoute(`GET ${SETTINGS_URL}`, 'applications:read', {
    application: 'query',
    summary: 'Get the settings of an application',
    data: settings,
    successHeaders: ETAG_HEADER,
    message: 'Successfully fetched application settings',
    handle: async ({ application, reply }) => {
      const found = await applications.getApplicationSettings(application);
      reply.header('etag', found.etag);
      return toJson(found.settings as ApplicationSettings);
    },
  }),
  updateApplicationSettings: defineRoute('PATCH /api/v1/panel/update-application-settings', 'applications:update', {
    application: 'query',
    summary: 'Set one setting of an application',
    description: [
      `\`value\` is a boolean for the Requires fields, ${TEXTS.join(', ')}, and \`online\` or \`paused\` for \`status\`.`,
      'Live clients are notified of a new `version` and a new `status`. Setting the current value changes and notifies nothing.',
    ].join(' '),
    headers: ifMatchHeaders,
    body: z.strictObject({ field: z.enum(NAMES), value: z.union([z.boolean(), z.string()]) }),
    documentedBody: documentedChange,
    examples: {
      pause: { field: 'status', value: 'paused' },
      version: { field: 'version', value: '1.1' },
      requireClientId: { field: 'applicationLicenseRequiresClientId', value: true },
    },
    message: 'Successfully update application settings',
    failures: ['updateApplicationSetting'],
    handle: ({ application, body: { field, value }, headers: { 'if-match': ifMatch = [] } }) => {
      const typed = typeof value === 'boolean' ? { case: 'boolValue' as const, value } : { case: 'stringValue' as const, value };
      return applications.updateApplicationSetting({ ...application, field: fieldNameOf(field), value: typed, ifMatch });
    },
  }),
});
