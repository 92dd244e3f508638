import { runTransaction } from '@latchkey/audit/transaction';
import { KEY_OVERLAP_SECONDS_MAX } from '@latchkey/contract/key-overlap';
import { SEARCH_PARAMS_LENGTH_MAX } from '@latchkey/contract/lengths';
import { INACTIVE_API_KEYS_MAX } from '@latchkey/contract/limits';
import { API_KEYS_PAGE_SIZE } from '@latchkey/contract/page-size';
import { hmac } from '@latchkey/kit/crypto/secrets';
import { etagOf, isExpected } from '@latchkey/kit/validation/etag';
import { newId, parseId, toId } from '@latchkey/kit/validation/id';
import { hasLength } from '@latchkey/kit/validation/text';
import type { ListApiKeyPageRequest } from '@latchkey/proto/latchkey/identity/v1/api_key_pb';
import { lockAccount } from '../account/account.store.ts';
import { recordAction } from '../audit/actions.ts';
import { apiKeyEpoch } from '../authentication/principal-epoch.ts';
import type { ActingContext, IdentityContext } from '../context.ts';
import type { Db } from '../db/schema.ts';
import { errors } from '../proto-errors.ts';
import * as store from './api-key.store.ts';
import { type ApiKeyChange, type ColumnChanges, checkChange, isActive, parseChange, toAuditChanges } from './api-key-rules.ts';
import { createApiKeyText } from './api-key-text.ts';

type ApiKeyRef = store.ApiKeyRef;
export type ApiKey = store.ApiKeyRow;

/**
 * A page of an account's keys, oldest first.
 * @param pageToken id of the last key of the previous page; empty for the first page
 */
export async function listApiKeys(ctx: IdentityContext, accountText: string, pageToken: string) {
  const after = pageToken === '' ? undefined : toId(pageToken);
  const rows = await store.selectApiKeys(ctx.db, toId(accountText), ctx.clock(), after, API_KEYS_PAGE_SIZE + 1);
  const apiKeys = rows.slice(0, API_KEYS_PAGE_SIZE);
  return { apiKeys, nextPageToken: rows.length > API_KEYS_PAGE_SIZE ? (apiKeys.at(-1)?.id ?? '') : '' };
}

/**
 * A numbered page of an account's keys, and the number of keys on all pages. Past the end, and for
 * text that no name may have, it is empty.
 * @param request `page` counts from 1
 */
export async function listApiKeyPage(ctx: IdentityContext, request: ListApiKeyPageRequest) {
  const { accountId, page, search } = request;
  if (page < 1 || !hasLength(search, 0, SEARCH_PARAMS_LENGTH_MAX)) return { apiKeys: [], total: 0 };
  const [offset, limit] = [(page - 1) * API_KEYS_PAGE_SIZE, API_KEYS_PAGE_SIZE];
  return store.selectApiKeyPage(ctx.db, toId(accountId), ctx.clock(), { ...request, offset, limit });
}

export async function findApiKey({ db }: IdentityContext, accountId: string, name: string): Promise<ApiKey | undefined> {
  const id = parseId(name);
  return id ? store.selectApiKey(db, accountId, 'id', id) : store.selectApiKey(db, accountId, 'public_id', name);
}

export async function getApiKeyUsage(ctx: IdentityContext, accountText: string) {
  const active = await store.countActiveApiKeys(ctx.db, toId(accountText), ctx.clock());
  return { active, activeMax: ctx.activeApiKeysMax };
}

/** Creates a key. Returns the record and the only copy of the key's text. */
export async function createApiKey(ctx: ActingContext, accountText: string, settings: ApiKeyChange) {
  const now = ctx.clock();
  const columns = parseChange(settings, now) as Required<ColumnChanges>;
  const accountId = toId(accountText);
  await checkOwned(ctx, accountId, columns.application_ids);
  const key = createKey(ctx, accountId, now);
  return runTransaction(ctx.db, async (tx) => {
    await reserveActiveApiKey(ctx, tx, accountId, now);
    const apiKey = await store.insertApiKey(tx, { ...columns, ...key.columns });
    await recordAction(ctx, tx, { accountId, apiKeyId: apiKey.id }, 'api_key.created', toAuditChanges(apiKey));
    return { apiKey, plaintextKey: key.text };
  });
}

/** Throws `api_key_not_found`. */
export async function getApiKey({ db }: IdentityContext, ref: ApiKeyRef): Promise<ApiKey> {
  const { accountId, apiKeyId } = toRef(ref);
  const row = await store.selectApiKey(db, accountId, 'id', apiKeyId);
  if (!row) throw errors.api_key_not_found();
  return row;
}

/** Entity tag of what the owner can change, so that a use of the key changes nothing. */
export function etagOfKey({ name, scopes, all_applications, application_ids, expires_at, revoked_at }: ApiKey): string {
  return etagOf([name, scopes, all_applications, application_ids, expires_at, revoked_at]);
}

/**
 * Changes some settings of a key, from the next request on.
 *
 * @param ref `ifMatch` has the entity tags of the expected state
 */
export async function updateApiKey(
  ctx: ActingContext,
  ref: ApiKeyRef & { readonly ifMatch: readonly string[] },
  change: ApiKeyChange,
) {
  const now = ctx.clock();
  const changes = parseChange(change, now);
  const { accountId, apiKeyId } = toRef(ref);
  await getApiKey(ctx, ref);
  await checkOwned(ctx, accountId, changes.application_ids ?? []);
  return changeLocked(ctx, { accountId, apiKeyId }, async (tx, stored) => {
    if (!isExpected(ref.ifMatch, etagOfKey(stored))) throw errors.changed_meanwhile();
    checkChange(stored, changes);
    if (Object.keys(changes).length === 0) return stored;
    const isRevived = !isActive(stored, now) && isActive({ ...stored, ...changes }, now);
    if (isRevived) await reserveActiveApiKey(ctx, tx, accountId, now);
    await recordAction(ctx, tx, { accountId, apiKeyId }, 'api_key.updated', toAuditChanges(changes));
    return store.updateApiKeyRow(tx, apiKeyId, { ...changes, updated_at: now });
  });
}

/**
 * Creates a key with the name, rights and expiry of another one, which expires after the overlap.
 * Returns the record and the only copy of the key's text.
 *
 * @throws `api_key_not_found`, `api_key_settings_invalid` for an overlap out of bounds,
 *   `exchanged_api_key_unchangeable`, `api_key_not_active`, `active_api_keys_limit_exceeded` for
 *   twice the limit of active keys
 */
export async function rotateApiKey(ctx: ActingContext, ref: ApiKeyRef, overlapSeconds: number) {
  const owned = toRef(ref);
  if (!Number.isInteger(overlapSeconds) || overlapSeconds < 0 || overlapSeconds > KEY_OVERLAP_SECONDS_MAX)
    throw errors.api_key_settings_invalid();
  const { replaced, ...created } = await runTransaction(ctx.db, async (tx) => {
    const stored = await store.lockApiKey(tx, owned);
    if (!stored) throw errors.api_key_not_found();
    if (stored.trusted_issuer_id) throw errors.exchanged_api_key_unchangeable();
    const now = ctx.clock();
    if (!isActive(stored, now)) throw errors.api_key_not_active();
    const { name, scopes, all_applications, application_ids, expires_at, account_id: accountId, id: apiKeyId } = stored;
    const overlapEnd = new Date(now.getTime() + overlapSeconds * 1_000);
    const expiresAt = expires_at && expires_at < overlapEnd ? expires_at : overlapEnd;
    await store.updateApiKeyRow(tx, apiKeyId, { expires_at: expiresAt, updated_at: now });
    // As many old ones in their overlap.
    await reserveActiveApiKey(ctx, tx, accountId, now, 2 * ctx.activeApiKeysMax);
    const rights = { name, scopes, all_applications, application_ids, expires_at };
    const { text, columns } = createKey(ctx, accountId, now);
    const apiKey = await store.insertApiKey(tx, { ...rights, ...columns });
    const changes = { name, newKeyId: apiKey.id, expiresAt: expiresAt.toISOString() };
    await recordAction(ctx, tx, { accountId, apiKeyId }, 'api_key.rotated', changes);
    return { apiKey, plaintextKey: text, replaced: stored.public_id };
  });
  await ctx.epochs.end(apiKeyEpoch(replaced));
  return created;
}

export function createKey({ apiKeyPepper }: IdentityContext, accountId: string, now: Date) {
  const { text, publicId } = createApiKeyText();
  const hashes = { public_id: publicId, key_hash: hmac(apiKeyPepper, text), key_last4: text.slice(-4) };
  return { text, columns: { id: newId(), account_id: accountId, ...hashes, created_at: now, updated_at: now } };
}

/** Revokes a key from the next request on. Revoking it again changes nothing. */
export async function revokeApiKey(ctx: ActingContext, ref: ApiKeyRef): Promise<ApiKey> {
  return changeLocked(ctx, toRef(ref), async (tx, stored) => {
    if (stored.revoked_at) return stored;
    const { id: apiKeyId, account_id: accountId, name } = stored;
    const now = ctx.clock();
    await recordAction(ctx, tx, { accountId, apiKeyId }, 'api_key.revoked', { name });
    return store.updateApiKeyRow(tx, apiKeyId, { revoked_at: now, updated_at: now });
  });
}

const toRef = (ref: ApiKeyRef): ApiKeyRef => ({ accountId: toId(ref.accountId), apiKeyId: toId(ref.apiKeyId) });

type Change = (tx: Db, stored: ApiKey) => Promise<ApiKey>;

async function changeLocked(ctx: IdentityContext, ref: ApiKeyRef, change: Change): Promise<ApiKey> {
  const changed = await runTransaction(ctx.db, async (tx) => {
    const stored = await store.lockApiKey(tx, ref);
    if (!stored) throw errors.api_key_not_found();
    return change(tx, stored);
  });
  await ctx.epochs.end(apiKeyEpoch(changed.public_id));
  return changed;
}

/** Text other than an id is an unknown application. */
export async function checkOwned({ apps }: IdentityContext, accountId: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  if (!ids.every(parseId)) throw errors.application_not_found();
  const owned = new Set(await apps.findOwned(accountId, ids));
  if (!ids.every((id) => owned.has(id))) throw errors.application_not_found();
}

/**
 * Checks the limit of active keys, with the account locked so that concurrent creations count one
 * another. Removes the oldest inactive keys beyond their limit.
 */
async function reserveActiveApiKey(ctx: IdentityContext, tx: Db, accountId: string, now: Date, max = ctx.activeApiKeysMax) {
  if (!(await lockAccount(tx, accountId))) throw errors.account_not_found();
  if ((await store.countActiveApiKeys(tx, accountId, now)) >= max) throw errors.active_api_keys_limit_exceeded();
  await store.deleteInactiveApiKeys(tx, accountId, now, INACTIVE_API_KEYS_MAX);
}
