import { hmac } from '@latchkey/kit/secrets';
import { parseApiKeyText } from '../api-key/api-key-text.ts';
import type { IdentityContext } from '../context.ts';
import { apiKeyEpoch, type Epoch, sessionEpoch } from '../epoch/epoch.ts';
import { errors } from '../errors.ts';
import { isSessionAlive } from '../session/session-lifetime.ts';
import { csrfTokenOf, hashSessionToken } from '../session/session-token.ts';
import { selectApiKey, selectSessionByTokenHash } from './authentication.store.ts';
import { recordApiKeyUse, recordSessionUse } from './credential-use.ts';

/** An authenticated caller and what it may do. A session may do everything, in every application of its account. */
export interface Principal {
  readonly accountId: string;
  /** Of the account. */
  readonly username: string;
  readonly credentialId: string;
  /** Null means never. */
  readonly expiresAt: Date | null;
}

export interface ApiKeyPrincipal extends Principal {
  readonly scopes: string[];
  readonly allApplications: boolean;
  readonly applicationIds: string[];
}

export interface SessionPrincipal extends Principal {
  readonly csrfToken: string;
}

/** A principal and the epoch that was read before it. */
export interface Authenticated<P extends Principal> {
  readonly principal: P;
  readonly epoch: Epoch;
}

/**
 * Verifies a management key (specification 5, decisions 5). Text that was never a key costs no query.
 * An unknown key costs the same work as a wrong one.
 *
 * @param clientIp address of who presented it; what is no IP address counts as unknown
 * @throws `api_key_invalid`; for whoever has the right secret also `api_key_revoked` before `api_key_expired`
 */
export async function authenticateApiKey(
  ctx: IdentityContext,
  text: string,
  clientIp: string,
): Promise<Authenticated<ApiKeyPrincipal>> {
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
    scopes: stored.scopes,
    allApplications: stored.all_applications,
    applicationIds: stored.application_ids,
    expiresAt: stored.expires_at,
  };
  return { principal, epoch };
}

/**
 * Verifies a dashboard session's token (decisions 4). Its use keeps it from going idle.
 *
 * @throws `session_invalid`
 */
export async function authenticateSession(ctx: IdentityContext, token: string): Promise<Authenticated<SessionPrincipal>> {
  const tokenHash = hashSessionToken(token);
  if (!tokenHash) throw errors.session_invalid();
  const epoch = await ctx.epochs.read(sessionEpoch(tokenHash));
  const stored = await selectSessionByTokenHash(ctx.pool, tokenHash);
  const now = ctx.clock();
  if (!stored || !isSessionAlive({ lastSeenAt: stored.last_seen_at, expiresAt: stored.expires_at }, now)) {
    throw errors.session_invalid();
  }
  await recordSessionUse(ctx, stored, now);
  const principal = {
    accountId: stored.account_id,
    username: stored.username,
    credentialId: stored.id,
    expiresAt: stored.expires_at,
    csrfToken: csrfTokenOf(ctx.csrfKey, stored.id),
  };
  return { principal, epoch };
}
