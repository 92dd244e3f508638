import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { describeLength, KEY_NAME } from '@latchkey/contract/lengths';
import { INACTIVE_API_KEYS_MAX, KEY_APPLICATIONS_MAX } from '@latchkey/contract/limits';
import { API_KEYS_PAGE_SIZE } from '@latchkey/contract/page-size';
import { SCOPES } from '@latchkey/contract/scopes';
import { type ApiKey, ApiKeyOrder } from '@latchkey/proto/latchkey/identity/v1/api_key_pb';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { list } from '../routing/list.ts';
import { component, defineRoute, type RouteContext } from '../routing/route.ts';
import {
  applicationId,
  changeOf,
  date,
  dayCount,
  ETAG_HEADER,
  EXAMPLE_IDS,
  idOf,
  ifMatchHeaders,
  nameText,
  overlapSeconds,
  pageQuery,
  timestamp,
} from '../routing/schemas.ts';

const URL = '/api/v1/panel/api-keys';

const unique = (items: readonly unknown[]) => new Set(items).size === items.length;

export const scope = z.enum(SCOPES).meta({ id: 'Scope', description: 'What a management API key may do.' });

/** Settings of a key that a trusted issuer has too. */
export const keyFields = {
  name: nameText(KEY_NAME, `Name, ${describeLength(KEY_NAME)} without invisible ones and white space around.`),
  scopes: list(scope, 1, SCOPES.length).refine(unique, 'must not have a scope twice').meta({ uniqueItems: true }),
  allApplications: z.boolean(),
  applicationIds: list(applicationId, 0, KEY_APPLICATIONS_MAX),
};

const fields = {
  ...keyFields,
  expiresAt: z.iso
    .datetime({ offset: true })
    .transform((text) => new Date(text))
    .refine((date) => date.getTime() > Date.now(), 'must be in the future')
    .nullable(),
};

export const RESTRICTION = {
  path: ['applicationIds'],
  message: 'must have at least one id if allApplications is false, and none if it is true',
};

const ALL_AND_SOME = {
  properties: { allApplications: { const: true }, applicationIds: { minItems: 1 } },
  required: ['allApplications', 'applicationIds'],
};
const NONE = { properties: { allApplications: { const: false }, applicationIds: { maxItems: 0 } } };
/** {@link RESTRICTION} in the document. */
export const RESTRICTED = { not: { anyOf: [ALL_AND_SOME, NONE] } };

const createBody = z
  .strictObject({ ...fields, applicationIds: fields.applicationIds.optional(), expiresAt: fields.expiresAt.optional() })
  .refine(({ allApplications, applicationIds = [] }) => allApplications === (applicationIds.length === 0), RESTRICTION)
  .meta(RESTRICTED);

const updateBody = changeOf(fields)
  .refine((body) => body.allApplications !== true || !body.applicationIds?.length, RESTRICTION)
  .refine((body) => body.allApplications !== false || body.applicationIds?.length !== 0, RESTRICTION)
  .meta({ not: { anyOf: [ALL_AND_SOME, { ...NONE, required: ALL_AND_SOME.required }] } });

const record = {
  id: idOf('apiKey', 'API key id.'),
  name: z.string().meta({ examples: ['Build server'] }),
  publicId: z
    .string()
    .meta({ description: 'The part of the key between the prefix and the secret.', examples: ['4fT9bQxZ7mKw2LsR'] }),
  keyLast4: z.string().meta({ description: 'The last four characters of the key.', examples: ['x7Qp'] }),
  scopes: z.array(scope),
  allApplications: z.boolean(),
  applicationIds: z
    .array(applicationId)
    .meta({ description: 'Deleted applications leave it soon after; a key whose list has become empty reaches none.' }),
  expiresAt: timestamp.nullable(),
  revokedAt: timestamp.nullable(),
  lastUsedAt: timestamp.nullable(),
  lastUsedIp: z.nullable(z.string()).meta({ examples: ['203.0.113.7'] }),
  createdAt: timestamp,
  updatedAt: timestamp,
  issuer: z
    .optional(z.string())
    .meta({ description: 'Issuer of the token that the key was exchanged for.', examples: ['https://gitlab.com'] }),
  subject: z
    .optional(z.string())
    .meta({ description: 'Subject of that token.', examples: ['project_path:acme/editor:ref_type:branch:ref:main'] }),
};

const apiKey = z.object(record).meta({ id: 'ApiKey', description: 'A management API key, without its secret.' });

const createdApiKey = component('CreatedApiKey', {
  ...record,
  plaintextKey: z.string().meta({
    description: 'The key itself. It is shown this once.',
    examples: ['lk_mgmt_4fT9bQxZ7mKw2LsR_…'],
  }),
});

const ORDERS = {
  name: ApiKeyOrder.NAME,
  createdAt: ApiKeyOrder.CREATED_AT,
  lastUsedAt: ApiKeyOrder.LAST_USED_AT,
} as const;

const dailyRequests = z.object({ date, requests: z.int().meta({ examples: [128] }) }).meta({ id: 'DailyRequests' });

const params = z.object({ id: idOf('apiKey', 'Id of the key, from `listApiKeys`.') });

export const apiKeyRoutes = ({ clients: { apiKeys }, limits }: RouteContext) => ({
  listApiKeys: defineRoute(`GET ${URL}`, 'session', {
    summary: 'List management API keys',
    description: `Revoked and expired ones too, the newest ${INACTIVE_API_KEYS_MAX}. Those of trusted issuers leave the list when they expire.`,
    isLarge: true,
    data: z.array(apiKey),
    message: 'Successfully fetched API keys.',
    handle: async ({ principal }) => {
      const all: ApiKey[] = [];
      let pageToken = '';
      do {
        const page = await apiKeys.listApiKeys({ accountId: principal.accountId, pageToken });
        all.push(...page.apiKeys);
        pageToken = page.nextPageToken;
      } while (pageToken !== '');
      return all;
    },
  }),
  listApiKeysPage: defineRoute('GET /api/v1/panel/list-api-keys', 'session', {
    summary: 'List management API keys for people',
    description: `A page of ${API_KEYS_PAGE_SIZE} keys. A page past the end is empty.`,
    query: pageQuery(ORDERS, 'Keys', 'build', '-lastUsedAt'),
    isLarge: true,
    data: z.array(apiKey),
    pageSize: API_KEYS_PAGE_SIZE,
    message: 'Successfully fetched API keys.',
    handle: async ({ principal: { accountId }, query }) => {
      const { apiKeys: shown, total } = await apiKeys.listApiKeyPage({ accountId, ...query });
      return { data: shown, total };
    },
  }),
  getApiKey: defineRoute(`GET ${URL}/:id`, 'session', {
    summary: 'Get a management API key',
    params,
    data: apiKey,
    successHeaders: ETAG_HEADER,
    message: 'Successfully fetched API key.',
    handle: async ({ principal: { accountId }, params: { id: apiKeyId }, reply }) =>
      sendKey(reply, await apiKeys.getApiKey({ accountId, apiKeyId })),
  }),
  getApiKeyRequests: defineRoute(`GET ${URL}/:id/requests`, 'session', {
    summary: 'Get the requests of a management API key by day',
    description:
      'A row for each day, oldest first; today is the last. Requests are counted in the background, and shown within 15 seconds. Those beyond a rate limit (429) are not counted.',
    params,
    query: z.object({ days: dayCount }),
    data: z.array(dailyRequests),
    failures: ['listApiKeyRequests'],
    message: 'Successfully fetched requests.',
    handle: async ({ principal: { accountId }, params: { id: apiKeyId }, query: { days } }) => {
      return (await apiKeys.listApiKeyRequests({ accountId, apiKeyId, days })).days;
    },
  }),
  createApiKey: defineRoute(`POST ${URL}`, 'session', {
    summary: 'Create a management API key',
    description:
      '`plaintextKey` is shown once. `applicationIds` is required when `allApplications` is false, else absent or empty. ' +
      'Ten keys an hour, twenty active ones.',
    limit: { limit: limits.apiKeyCreation, per: 'account', successesOnly: true },
    body: createBody,
    examples: {
      allApplications: { name: 'Build server', scopes: ['applications:read', 'files:upload'], allApplications: true },
      oneApplication: {
        name: 'Support desk',
        scopes: ['files:read'],
        allApplications: false,
        applicationIds: [EXAMPLE_IDS.application],
        expiresAt: '2099-12-31T23:59:59.000Z',
      },
    },
    data: createdApiKey,
    message: 'API key created.',
    handle: async ({ principal, body }) => {
      const { expiresAt, applicationIds = [], ...rest } = body;
      const expiry = expiresAt ? { expiresAt: timestampFromDate(expiresAt) } : {};
      const created = await apiKeys.createApiKey({ accountId: principal.accountId, ...rest, applicationIds, ...expiry });
      return { ...created.apiKey, plaintextKey: created.plaintextKey };
    },
  }),
  updateApiKey: defineRoute(`PATCH ${URL}/:id`, 'session', {
    summary: 'Change a management API key',
    description: 'Changes the given properties. A narrowed key is rejected from the next request on.',
    params,
    headers: ifMatchHeaders,
    successHeaders: ETAG_HEADER,
    body: updateBody,
    examples: { rename: { name: 'Release server' }, narrow: { scopes: ['files:upload'] } },
    data: apiKey,
    message: 'API key updated.',
    handle: async ({ principal, params: { id }, body, headers: { 'if-match': ifMatch = [] }, reply }) => {
      const { scopes, applicationIds, expiresAt, ...plain } = body;
      const updated = await apiKeys.updateApiKey({
        accountId: principal.accountId,
        apiKeyId: id,
        ifMatch,
        ...plain,
        ...(scopes && { scopes: { scopes } }),
        ...(applicationIds && { applicationIds: { applicationIds } }),
        expiry: toExpiry(expiresAt),
      });
      return sendKey(reply, updated);
    },
  }),
  revokeApiKey: defineRoute(`POST ${URL}/:id/revoke`, 'session', {
    summary: 'Revoke a management API key',
    description: 'The key is rejected from the next request on. Revoking it again changes nothing.',
    params,
    data: apiKey,
    message: 'API key revoked.',
    handle: async ({ principal, params: { id } }) => {
      return (await apiKeys.revokeApiKey({ accountId: principal.accountId, apiKeyId: id })).apiKey;
    },
  }),
  rotateApiKey: defineRoute(`POST ${URL}/:id/rotate`, 'session', {
    summary: 'Replace a management API key',
    description:
      'Creates a key with the same name, rights and expiry. The old key expires after `overlapSeconds`, immediately unless given, and never later than before. Counts as a creation.',
    limit: { limit: limits.apiKeyCreation, per: 'account', successesOnly: true },
    params,
    body: z.strictObject({ overlapSeconds }),
    isBodyOptional: true,
    examples: { oneDay: { overlapSeconds: 86_400 } },
    data: createdApiKey,
    message: 'API key rotated.',
    handle: async ({ principal, params: { id }, body: { overlapSeconds = 0 } }) => {
      const rotated = await apiKeys.rotateApiKey({ accountId: principal.accountId, apiKeyId: id, overlapSeconds });
      return { ...rotated.apiKey, plaintextKey: rotated.plaintextKey };
    },
  }),
});

function sendKey(reply: FastifyReply, { apiKey }: { readonly apiKey?: ApiKey | undefined }) {
  reply.header('etag', apiKey?.etag ?? '');
  return apiKey;
}

function toExpiry(expiresAt: Date | null | undefined) {
  if (expiresAt === undefined) return { case: undefined };
  if (expiresAt === null) return { case: 'neverExpires' as const, value: true };
  return { case: 'expiresAt' as const, value: timestampFromDate(expiresAt) };
}
