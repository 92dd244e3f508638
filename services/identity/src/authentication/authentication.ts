import { isIP } from 'node:net';
import { hmac } from '@latchkey/kit/crypto/secrets';
import { parseApiKeyText } from '../api-key/api-key-text.ts';
import type { IdentityContext } from '../context.ts';
import { apiKeyEpoch, type Epoch, sessionEpoch } from '../epoch/epoch.ts';
import { errors } from '../errors.ts';
import { csrfTokenOf, hashSessionToken, isSessionAlive } from '../session/session.ts';
import { type StoredApiKey, selectApiKey, selectSession, updateApiKeyUse, updateSessionUse } from './authentication.store.ts';

/** A use from the same address is recorded once in this time (authentication.proto). */
const USE_INTERVAL_MS = 60_000;

export interface Authenticated {
  readonly epoch: Epoch;
  readonly principal: {
    readonly accountId: string;
    readonly username: string;
    readonly credentialId: string;
    readonly expiresAt: Date | null;
    /** Empty for a session, which has every scope and every application of its account. */
    readonly scopes: string[];
    readonly allApplications: boolean;
    readonly applicationIds: string[];
    readonly csrfToken: string;
  };
}

/**
 * Verifies a management key. Malformed keys cost no query; unknown keys cost the same as wrong
 * ones.
 * @param clientIp text that is no IP address counts as unknown
 */
export async function authenticateApiKey(ctx: IdentityContext, text: string, clientIp: string): Promise<Authenticated> {
  const key = parseApiKeyText(text);
  if (!key) throw errors.api_key_invalid();
  const epoch = await ctx.epochs.read(apiKeyEpoch(key.publicId));
  const stored = await selectApiKey(ctx.pool, key.publicId, hmac(ctx.apiKeyPepper, key.text));
  if (!stored) throw errors.api_key_invalid();
  const now = ctx.clock();
  if (stored.revoked_at) throw errors.api_key_revoked();
  if (stored.expires_at && stored.expires_at <= now) throw errors.api_key_expired();
  await recordApiKeyUse(ctx, stored, clientIp, now);
  const principal = {
    accountId: stored.account_id,
    username: stored.username,
    credentialId: stored.id,
    expiresAt: stored.expires_at,
    scopes: stored.scopes,
    allApplications: stored.all_applications,
    applicationIds: stored.application_ids,
    csrfToken: '',
  };
  return { principal, epoch };
}

/** Verifies a session's token, whose use prevents the session from becoming idle. */
export async function authenticateSession(ctx: IdentityContext, token: string): Promise<Authenticated> {
  const tokenHash = hashSessionToken(token);
  if (!tokenHash) throw errors.session_invalid();
  const epoch = await ctx.epochs.read(sessionEpoch(tokenHash));
  const stored = await selectSession(ctx.pool, tokenHash);
  const now = ctx.clock();
  if (!stored || !isSessionAlive(stored, now)) throw errors.session_invalid();
  const recentAfter = new Date(now.getTime() - USE_INTERVAL_MS);
  if (stored.last_seen_at <= recentAfter) {
    await orLog(ctx, updateSessionUse(ctx.pool, { id: stored.id, at: now, recentAfter }));
  }
  const principal = {
    accountId: stored.account_id,
    username: stored.username,
    credentialId: stored.id,
    expiresAt: stored.expires_at,
    scopes: [],
    allApplications: true,
    applicationIds: [],
    csrfToken: csrfTokenOf(ctx.csrfKey, stored.id),
  };
  return { principal, epoch };
}

async function recordApiKeyUse(ctx: IdentityContext, key: StoredApiKey, clientIp: string, at: Date): Promise<void> {
  // A zone identifier means something on the client's own host only.
  const ip = isIP(clientIp) === 0 ? null : clientIp.replace(/%.*/s, '');
  const recentAfter = new Date(at.getTime() - USE_INTERVAL_MS);
  const isRecent = key.last_used_at !== null && key.last_used_at > recentAfter;
  if (isRecent && (ip === null || ip === key.last_used_ip)) return;
  await orLog(ctx, updateApiKeyUse(ctx.pool, { id: key.id, at, recentAfter }, ip));
}

/** The credential is valid, whether or not its use can be recorded. */
async function orLog(ctx: IdentityContext, write: Promise<void>): Promise<void> {
  await write.catch((err: unknown) => ctx.logger.warn({ err }, 'use of a credential not recorded'));
}
