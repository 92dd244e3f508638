import { type Timestamp, timestampFromDate, timestampMs } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import { actingFor } from '@latchkey/audit/actor';
import type { ApiKeyService, UpdateApiKeyRequest } from '@latchkey/proto/latchkey/identity/v1/api_key_pb';
import type { IdentityContext } from '../context.ts';
import type { ApiKeyRow } from './api-key.store.ts';
import { createApiKey, type FindOwnedApplications, getApiKeyUsage, listApiKeys, revokeApiKey, updateApiKey } from './api-key.ts';
import type { ApiKeyChange } from './api-key-rules.ts';

export function apiKeyRpc(ctx: IdentityContext, findOwned: FindOwnedApplications): ServiceImpl<typeof ApiKeyService> {
  return {
    async listApiKeys({ accountId, pageToken }) {
      const { apiKeys, nextPageToken } = await listApiKeys(ctx, accountId, pageToken);
      return { apiKeys: apiKeys.map(toMessage), nextPageToken };
    },
    async createApiKey({ accountId, expiresAt, ...request }, call) {
      const settings = { ...request, expiresAt: expiresAt ? toDate(expiresAt) : null };
      const { apiKey, plaintextKey } = await createApiKey(actingFor(ctx, call), accountId, settings, findOwned);
      return { apiKey: toMessage(apiKey), plaintextKey };
    },
    async updateApiKey(request, call) {
      return { apiKey: toMessage(await updateApiKey(actingFor(ctx, call), request, toChange(request), findOwned)) };
    },
    async revokeApiKey(request, call) {
      return { apiKey: toMessage(await revokeApiKey(actingFor(ctx, call), request)) };
    },
    async getApiKeyUsage({ accountId }) {
      const { active, activeMax } = await getApiKeyUsage(ctx, accountId);
      return { activeCount: BigInt(active), activeCountMax: BigInt(activeMax) };
    },
  };
}

function toChange({ name, scopes, allApplications, applicationIds, expiry }: UpdateApiKeyRequest): ApiKeyChange {
  const change = { name, scopes: scopes?.scopes, allApplications, applicationIds: applicationIds?.applicationIds };
  if (expiry.case === 'expiresAt') return { ...change, expiresAt: toDate(expiry.value) };
  return { ...change, ...(expiry.value && { expiresAt: null }) };
}

/** A time that no Date can hold becomes an invalid one, which the rules reject. */
function toDate(timestamp: Timestamp): Date {
  return new Date(timestampMs(timestamp));
}

function toMessage(key: ApiKeyRow) {
  const toTimestamp = (date: Date | null) => (date ? timestampFromDate(date) : undefined);
  return {
    id: key.id,
    name: key.name,
    publicId: key.public_id,
    keyLast4: key.key_last4,
    scopes: key.scopes,
    allApplications: key.all_applications,
    applicationIds: key.application_ids,
    expiresAt: toTimestamp(key.expires_at),
    revokedAt: toTimestamp(key.revoked_at),
    lastUsedAt: toTimestamp(key.last_used_at),
    lastUsedIp: key.last_used_ip ?? undefined,
    createdAt: toTimestamp(key.created_at),
    updatedAt: toTimestamp(key.updated_at),
  };
}
