import { isIP } from 'node:net';
import { hmac } from '@latchkey/kit/crypto/secrets';
import type pg from 'pg';
import type { ApiKeyRow } from '../api-key/api-key.store.ts';
import { parseApiKeyText } from '../api-key/api-key-text.ts';
import type { IdentityContext } from '../context.ts';
import { errors } from '../proto-errors.ts';
import type { SessionRow } from '../session/session.store.ts';
import { csrfTokenOf, hashSessionToken, isSessionAlive, toStoredUserAgent } from '../session/session.ts';
import { apiKeyEpoch, sessionEpoch } from './principal-epoch.ts';

/** A use from the same address is recorded once in this time (authentication.proto). */
const USE_INTERVAL_MS = 60_000;

type StoredApiKey = ApiKeyRow & { readonly username: string };
type StoredSession = SessionRow & { readonly username: string };

/** A subquery instead of a join leaves the planner one way to find one row. */
const USERNAME = '(select username from account where account.id = account_id) as username';

/**
 * The hash is in the condition, so that a wrong key with an existing public id costs the same as an
 * unknown one. HMACs under a secret pepper need no comparison in constant time.
 */
const SELECT_API_KEY = `
  select id, account_id, ${USERNAME}, scopes, all_applications, application_ids, expires_at, revoked_at, last_used_at, last_used_ip
  from api_key where public_id = $1 and key_hash = $2`;

const SELECT_SESSION = `select id, account_id, ${USERNAME}, last_seen_at, expires_at, last_used_ip from session where token_hash = $1`;

/** Of concurrent uses the first one writes. */
const UPDATE_API_KEY_USE = {
  name: 'update-api-key-use',
  text: `update api_key set last_used_at = $2, last_used_ip = coalesce($3, last_used_ip)
    where id = $1 and (last_used_at is null or last_used_at <= $4 or last_used_ip is distinct from coalesce($3, last_used_ip))`,
};

const UPDATE_SESSION_USE = {
  name: 'update-session-use',
  text: `update session set last_seen_at = greatest(last_seen_at, $2), last_used_ip = coalesce($3, last_used_ip),
      user_agent = coalesce($5, user_agent)
    where id = $1 and (last_seen_at <= $4 or last_used_ip is distinct from coalesce($3, last_used_ip))`,
};

/**
 * Verifies a management key. Malformed keys cost no query; unknown keys cost the same as wrong
 * ones.
 * @param clientIp text other than an IP address counts as unknown
 */
export async function authenticateApiKey(ctx: IdentityContext, text: string, clientIp: string) {
  const key = parseApiKeyText(text);
  if (!key) throw errors.api_key_invalid();
  const epoch = await ctx.epochs.read(apiKeyEpoch(key.publicId));
  const values = [key.publicId, hmac(ctx.apiKeyPepper, key.text)];
  const { rows } = await ctx.pool.query<StoredApiKey>({ name: 'select-api-key', text: SELECT_API_KEY, values });
  const [stored] = rows;
  if (!stored) throw errors.api_key_invalid();
  const now = ctx.clock();
  if (stored.revoked_at) throw errors.api_key_revoked();
  if (stored.expires_at && stored.expires_at <= now) throw errors.api_key_expired();
  await recordUse(ctx, UPDATE_API_KEY_USE, stored, { last: stored.last_used_at, at: now, clientIp });
  const rights = { scopes: stored.scopes, allApplications: stored.all_applications, applicationIds: stored.application_ids };
  return { principal: { ...principalOf(stored), ...rights, csrfToken: '' }, epoch };
}

/**
 * Verifies a session's token, whose use prevents the session from becoming idle.
 * @param client its address, as for a key, and its `User-Agent`
 * @returns the principal, without scopes, as a session has every one
 */
export async function authenticateSession(ctx: IdentityContext, token: string, client = { clientIp: '', userAgent: '' }) {
  const tokenHash = hashSessionToken(token);
  if (!tokenHash) throw errors.session_invalid();
  const epoch = await ctx.epochs.read(sessionEpoch(tokenHash));
  const { rows } = await ctx.pool.query<StoredSession>({ name: 'select-session', text: SELECT_SESSION, values: [tokenHash] });
  const [stored] = rows;
  const now = ctx.clock();
  if (!stored || !isSessionAlive(stored, now)) throw errors.session_invalid();
  await recordUse(ctx, UPDATE_SESSION_USE, stored, { last: stored.last_seen_at, at: now, ...client });
  const rights = { scopes: [], allApplications: true, applicationIds: [] };
  return { principal: { ...principalOf(stored), ...rights, csrfToken: csrfTokenOf(ctx.csrfKey, stored.id) }, epoch };
}

function principalOf({ account_id: accountId, username, id: credentialId, expires_at: expiresAt }: StoredApiKey | StoredSession) {
  return { accountId, username, credentialId, expiresAt };
}

/** Records a use, once a minute and address. A credential is valid even where that fails. */
async function recordUse(
  { pool, logger }: IdentityContext,
  { name, text }: pg.QueryConfig,
  { id, last_used_ip }: StoredApiKey | StoredSession,
  use: { readonly last: Date | null; readonly at: Date; readonly clientIp: string; readonly userAgent?: string },
): Promise<void> {
  // A zone identifier means something on the client's own host only.
  const ip = isIP(use.clientIp) === 0 ? null : use.clientIp.replace(/%.*/s, '');
  const recentAfter = new Date(use.at.getTime() - USE_INTERVAL_MS);
  if (use.last && use.last > recentAfter && (ip === null || ip === last_used_ip)) return;
  const userAgent = use.userAgent === undefined ? [] : [toStoredUserAgent(use.userAgent)];
  const update = pool.query({ name, text, values: [id, use.at, ip, recentAfter, ...userAgent] });
  await update.catch((err: unknown) => logger.warn({ err }, 'use of a credential not recorded'));
}
