import { type Timestamp, timestampFromDate, timestampMs } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import { actingFor } from '@latchkey/audit/actor';
import type { ApiKeyService, UpdateApiKeyRequest } from '@latchkey/proto/latchkey/identity/v1/api_key_pb';
import type { IdentityContext } from '../context.ts';
import {
  type ApiKey,
  createApiKey,
  type FindOwnedApplications,
  getApiKeyUsage,
  listApiKeys,
  revokeApiKey,
  updateApiKey,
} from './api-key.ts';
import type { ApiKeyChange } from './api-key-rules.ts';

export function apiKeyRpc(ctx: IdentityContext, findOwned: FindOwnedApplications): ServiceImpl<typeof ApiKeyService> {
  return {
    async listApiKeys({ accountId, pageToken }) {
      const { apiKeys, nextPageToken } = await listApiKeys(ctx, accountId, pageToken);
      return { apiKeys: apiKeys.map(toMessage), nextPageToken };
    },
    async createApiKey({ accountId, name, scopes, allApplications, applicationIds, ...request }, call) {
      const expiresAt = request.expiresAt ? toDate(request.expiresAt) : null;
      const settings = { name, scopes, allApplications, applicationIds, expiresAt };
      const { apiKey, plaintextKey } = await createApiKey(actingFor(ctx, call), accountId, settings, findOwned);
      return { apiKey: toMessage(apiKey), plaintextKey };
    },
    async updateApiKey(request, call) {
      const ref = { accountId: request.accountId, id: request.apiKeyId };
      return { apiKey: toMessage(await updateApiKey(actingFor(ctx, call), ref, toChange(request), findOwned)) };
    },
    async revokeApiKey({ accountId, apiKeyId }, call) {
      return { apiKey: toMessage(await revokeApiKey(actingFor(ctx, call), { accountId, id: apiKeyId })) };
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
  return { ...change, ...(expiry.case === 'neverExpires' && expiry.value && { expiresAt: null }) };
}

/** A time that no Date can hold becomes an invalid one, which the rules reject. */
function toDate(timestamp: Timestamp): Date {
  return new Date(timestampMs(timestamp));
}

function toMessage(key: ApiKey) {
  return {
    id: key.id,
    name: key.name,
    publicId: key.public_id,
    keyLast4: key.key_last4,
    scopes: key.scopes,
    allApplications: key.all_applications,
    applicationIds: key.application_ids,
    ...(key.expires_at && { expiresAt: timestampFromDate(key.expires_at) }),
    ...(key.revoked_at && { revokedAt: timestampFromDate(key.revoked_at) }),
    ...(key.last_used_at && { lastUsedAt: timestampFromDate(key.last_used_at) }),
    ...(key.last_used_ip !== null && { lastUsedIp: key.last_used_ip }),
    createdAt: timestampFromDate(key.created_at),
    updatedAt: timestampFromDate(key.updated_at),
  };
}
