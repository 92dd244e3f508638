import { type Timestamp, timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ApiKey } from '@latchkey/proto/latchkey/identity/v1/api_key_pb';
import { z } from 'zod';
import { SCOPES } from '../authentication/principal.ts';
import type { Clients } from '../clients.ts';
import type { Limits } from '../limit/limits.ts';
import { defineRoute, type Route } from '../route/route.ts';
import { idText, nameText, timestamp } from './schemas.ts';

const TAG = 'API keys';
const URL = '/api/v1/panel/api-keys';

const unique = (list: readonly unknown[]) => new Set(list).size === list.length;

const fields = {
  name: nameText(3, 64, 'Name, 3 to 64 characters without invisible ones and white space around.'),
  scopes: z.array(z.enum(SCOPES)).min(1).refine(unique).meta({ uniqueItems: true }),
  allApplications: z.boolean(),
  applicationIds: z.array(idText),
  expiresAt: z.iso
    .datetime({ offset: true })
    .transform((text) => new Date(text))
    .refine((date) => date.getTime() > Date.now())
    .nullable(),
};

const createBody = z
  .strictObject({ ...fields, applicationIds: fields.applicationIds.optional(), expiresAt: fields.expiresAt.optional() })
  .refine(({ allApplications, applicationIds = [] }) => allApplications === (applicationIds.length === 0));

const updateBody = z
  .strictObject(fields)
  .partial()
  .refine((body) => Object.keys(body).length > 0)
  .refine((body) => body.allApplications !== true || !body.applicationIds?.length)
  .refine((body) => body.allApplications !== false || body.applicationIds?.length !== 0);

const record = {
  id: idText,
  name: z.string(),
  publicId: z.string(),
  keyLast4: z.string(),
  scopes: z.array(z.enum(SCOPES)),
  allApplications: z.boolean(),
  applicationIds: z
    .array(idText)
    .meta({ description: 'Deleted applications leave it soon after; a key whose list has become empty reaches none.' }),
  expiresAt: timestamp.nullable(),
  revokedAt: timestamp.nullable(),
  lastUsedAt: timestamp.nullable(),
  lastUsedIp: z.string().nullable(),
  createdAt: timestamp,
  updatedAt: timestamp,
};

const params = z.object({ id: idText });

/** Management API keys (decisions 5). */
export function apiKeyRoutes({ apiKeys }: Clients, limits: Limits): Route[] {
  return [
    defineRoute({
      method: 'GET',
      url: URL,
      access: 'session',
      tag: TAG,
      summary: 'List management API keys',
      data: z.array(z.object(record)),
      message: 'Successfully fetched API keys.',
      handle: async ({ principal, call }) => {
        const all: ReturnType<typeof toRecord>[] = [];
        let pageToken = '';
        do {
          const page = await apiKeys.listApiKeys({ accountId: principal.accountId, pageToken }, call);
          all.push(...page.apiKeys.map(toRecord));
          pageToken = page.nextPageToken;
        } while (pageToken !== '');
        return all;
      },
    }),
    defineRoute({
      method: 'POST',
      url: URL,
      access: 'session',
      tag: TAG,
      summary: 'Create a management API key',
      description:
        '`plaintextKey` is shown once. `applicationIds` is required when `allApplications` is false, else absent or empty. ' +
        'Ten keys an hour, twenty active ones.',
      limit: { limit: limits.apiKeyCreation, per: 'account', successesOnly: true },
      body: createBody,
      data: z.object({ ...record, plaintextKey: z.string() }),
      failures: ['too_many_keys', 'not_found'],
      message: 'API key created.',
      handle: async ({ principal, body, call }) => {
        const { expiresAt, applicationIds = [], ...rest } = body;
        const expiry = expiresAt ? { expiresAt: timestampFromDate(expiresAt) } : {};
        const created = await apiKeys.createApiKey({ accountId: principal.accountId, ...rest, applicationIds, ...expiry }, call);
        return { ...toRecord(created.apiKey as ApiKey), plaintextKey: created.plaintextKey };
      },
    }),
    defineRoute({
      method: 'PATCH',
      url: `${URL}/:id`,
      access: 'session',
      tag: TAG,
      summary: 'Change a management API key',
      description: 'Changes what is given and leaves the rest. A narrowed key is refused from the next request on.',
      params,
      body: updateBody,
      data: z.object(record),
      failures: ['not_found'],
      message: 'API key updated.',
      handle: async ({ principal, params: { id }, body, call }) => {
        const { scopes, applicationIds, expiresAt, ...plain } = body;
        const updated = await apiKeys.updateApiKey(
          {
            accountId: principal.accountId,
            apiKeyId: id,
            ...plain,
            ...(scopes && { scopes: { scopes } }),
            ...(applicationIds && { applicationIds: { applicationIds } }),
            expiry: toExpiry(expiresAt),
          },
          call,
        );
        return toRecord(updated.apiKey as ApiKey);
      },
    }),
    defineRoute({
      method: 'POST',
      url: `${URL}/:id/revoke`,
      access: 'session',
      tag: TAG,
      summary: 'Revoke a management API key',
      description: 'The key is refused from the next request on. Revoking it again changes nothing.',
      params,
      data: z.object(record),
      failures: ['not_found'],
      message: 'API key revoked.',
      handle: async ({ principal, params: { id }, call }) => {
        const revoked = await apiKeys.revokeApiKey({ accountId: principal.accountId, apiKeyId: id }, call);
        return toRecord(revoked.apiKey as ApiKey);
      },
    }),
  ];
}

function toExpiry(expiresAt: Date | null | undefined) {
  if (expiresAt === undefined) return { case: undefined };
  if (expiresAt === null) return { case: 'neverExpires' as const, value: true };
  return { case: 'expiresAt' as const, value: timestampFromDate(expiresAt) };
}

const isoOrNull = (time: Timestamp | undefined) => (time ? timestampDate(time).toISOString() : null);

function toRecord(key: ApiKey) {
  return {
    id: key.id,
    name: key.name,
    publicId: key.publicId,
    keyLast4: key.keyLast4,
    scopes: key.scopes,
    allApplications: key.allApplications,
    applicationIds: key.applicationIds,
    expiresAt: isoOrNull(key.expiresAt),
    revokedAt: isoOrNull(key.revokedAt),
    lastUsedAt: isoOrNull(key.lastUsedAt),
    lastUsedIp: key.lastUsedIp ?? null,
    createdAt: isoOrNull(key.createdAt),
    updatedAt: isoOrNull(key.updatedAt),
  };
}
