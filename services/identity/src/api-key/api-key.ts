import { newId, parseId } from '@latchkey/kit/id';
import { hmac } from '@latchkey/kit/secrets';
import { type ActingContext, recordApiKey } from '../audit/audit.ts';
import type { IdentityContext } from '../context.ts';
import { apiKeyEpoch } from '../epoch/epoch.ts';
import { errors } from '../errors.ts';
import { isActive, reserveActiveApiKey } from './active-api-keys.ts';
import {
  type ApiKeyRef,
  type ApiKeyRow,
  insertApiKey,
  lockApiKey,
  selectApiKey,
  selectApiKeys,
  updateApiKeyRow,
} from './api-key.store.ts';
import { type ApiKeyChange, checkChange, parseChange, toAuditChanges } from './api-key-change.ts';
import { parseApplicationIds, parseExpiry, parseName, parseScopes } from './api-key-rules.ts';
import { createApiKeyText } from './api-key-text.ts';
import { checkOwned, type FindOwnedApplications } from './owned-applications.ts';

/** A key's record, without its secret. */
export type ApiKey = Omit<ApiKeyRow, 'key_hash'>;

/** What a new key is made of, as its owner sent it. */
export interface ApiKeySettings {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly allApplications: boolean;
  readonly applicationIds: readonly string[];
  /** Undefined means never. */
  readonly expiresAt: Date | undefined;
}

/** A key may name 1,000 applications: so many keys stay below the 1 MiB of a message. */
const PAGE_SIZE = 20;

/**
 * A page of an account's keys, oldest first. Text that is no account id names an account without keys.
 *
 * @param pageToken id of the last key of the page before; empty for the first page
 */
export async function listApiKeys(
  ctx: IdentityContext,
  accountText: string,
  pageToken: string,
): Promise<{ apiKeys: ApiKey[]; nextPageToken: string }> {
  const accountId = parseId(accountText);
  const after = pageToken === '' ? undefined : parseId(pageToken);
  if (!accountId || (pageToken !== '' && !after)) return { apiKeys: [], nextPageToken: '' };
  const rows = await selectApiKeys(ctx.db, accountId, { after, limit: PAGE_SIZE + 1 });
  const apiKeys = rows.slice(0, PAGE_SIZE);
  return { apiKeys, nextPageToken: rows.length > PAGE_SIZE ? (apiKeys.at(-1)?.id ?? '') : '' };
}

/**
 * Makes a key (decisions 5).
 *
 * @returns the record and the only copy of the key's text
 * @throws `api_key_settings_invalid`, `account_not_found`, `application_not_found`, `active_api_keys_limit_exceeded`
 */
export async function createApiKey(
  ctx: ActingContext,
  accountText: string,
  settings: ApiKeySettings,
  findOwned: FindOwnedApplications,
): Promise<{ apiKey: ApiKey; plaintextKey: string }> {
  const now = ctx.clock();
  const name = parseName(settings.name);
  const scopes = parseScopes(settings.scopes);
  const expiresAt = settings.expiresAt ? parseExpiry(settings.expiresAt, now) : null;
  if (settings.allApplications === settings.applicationIds.length > 0) throw errors.api_key_settings_invalid();
  const accountId = parseId(accountText);
  if (!accountId) throw errors.account_not_found();
  const applicationIds = parseApplicationIds(settings.applicationIds);
  await checkOwned(accountId, applicationIds, findOwned);
  const { text, publicId } = createApiKeyText(ctx.random);
  const apiKey = await ctx.db.transaction().execute(async (tx) => {
    await reserveActiveApiKey(ctx, tx, accountId, now);
    const inserted = await insertApiKey(tx, {
      id: newId(),
      account_id: accountId,
      name,
      public_id: publicId,
      key_hash: hmac(ctx.apiKeyPepper, text),
      key_last4: text.slice(-4),
      scopes,
      all_applications: settings.allApplications,
      application_ids: applicationIds,
      expires_at: expiresAt,
      created_at: now,
      updated_at: now,
    });
    await recordApiKey(ctx, tx, { accountId, id: inserted.id }, 'api_key.created', toAuditChanges(inserted));
    return inserted;
  });
  return { apiKey, plaintextKey: text };
}

/**
 * Changes what is given of a key and leaves the rest. What the key may no longer do is refused from the next request on (decisions 5).
 *
 * @throws `api_key_settings_invalid`, `api_key_not_found`, `application_not_found`, `revoked_api_key_unchangeable`, `api_key_conflict`,
 * `active_api_keys_limit_exceeded`
 */
export async function updateApiKey(
  ctx: ActingContext,
  ref: ApiKeyRef,
  change: ApiKeyChange,
  findOwned: FindOwnedApplications,
): Promise<ApiKey> {
  const now = ctx.clock();
  const changes = parseChange(change, now);
  const found = parseRef(ref);
  if (!(await selectApiKey(ctx.db, found))) throw errors.api_key_not_found();
  await checkOwned(found.accountId, changes.application_ids ?? [], findOwned);
  const updated = await ctx.db.transaction().execute(async (tx) => {
    const stored = await lockApiKey(tx, found);
    if (!stored) throw errors.api_key_not_found();
    checkChange(stored, changes);
    if (Object.keys(changes).length === 0) return stored;
    const revived = !isActive(stored, now) && isActive({ ...stored, ...changes }, now);
    if (revived) await reserveActiveApiKey(ctx, tx, found.accountId, now);
    await recordApiKey(ctx, tx, found, 'api_key.updated', toAuditChanges(changes));
    return updateApiKeyRow(tx, found.id, { ...changes, updated_at: now });
  });
  await ctx.epochs.end(apiKeyEpoch(updated.public_id));
  return updated;
}

/**
 * Ends a key for good, from the next request on. Revoking it again changes nothing (decisions 5).
 *
 * @throws `api_key_not_found`
 */
export async function revokeApiKey(ctx: ActingContext, ref: ApiKeyRef): Promise<ApiKey> {
  const found = parseRef(ref);
  const revoked = await ctx.db.transaction().execute(async (tx) => {
    const stored = await lockApiKey(tx, found);
    if (!stored) throw errors.api_key_not_found();
    if (stored.revoked_at) return stored;
    const now = ctx.clock();
    await recordApiKey(ctx, tx, found, 'api_key.revoked', { name: stored.name });
    return updateApiKeyRow(tx, found.id, { revoked_at: now, updated_at: now });
  });
  await ctx.epochs.end(apiKeyEpoch(revoked.public_id));
  return revoked;
}

function parseRef(ref: ApiKeyRef): ApiKeyRef {
  const [accountId, id] = [parseId(ref.accountId), parseId(ref.id)];
  if (!accountId || !id) throw errors.api_key_not_found();
  return { accountId, id };
}
