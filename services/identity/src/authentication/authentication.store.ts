import type pg from 'pg';

/** A management key as authentication needs it. */
export interface StoredApiKey {
  readonly id: string;
  readonly account_id: string;
  readonly username: string;
  readonly scopes: string[];
  readonly all_applications: boolean;
  readonly application_ids: string[];
  readonly expires_at: Date | null;
  readonly revoked_at: Date | null;
  readonly last_used_at: Date | null;
  readonly last_used_ip: string | null;
}

/** A session as authentication needs it. */
export interface StoredSession {
  readonly id: string;
  readonly account_id: string;
  readonly username: string;
  readonly last_seen_at: Date;
  readonly expires_at: Date;
}

/** A look-up and not a join: the planner does not think of any other way to find one row. */
const USERNAME = '(select username from account where account.id = account_id) as username';

/**
 * The hash is part of the condition, so that a wrong key with an existing public id costs the same
 * as an unknown one. Comparing HMACs under a secret pepper reveals nothing about the key: where they
 * differ does not depend on where the keys differ.
 */
const SELECT_API_KEY = `
  select id, account_id, ${USERNAME}, scopes, all_applications, application_ids, expires_at, revoked_at, last_used_at, last_used_ip
  from api_key where public_id = $1 and key_hash = $2`;

const SELECT_SESSION = `select id, account_id, ${USERNAME}, last_seen_at, expires_at from session where token_hash = $1`;

/** Of uses at once, the first one writes and the others find the condition false. */
const UPDATE_API_KEY_USE = `
  update api_key set last_used_at = $2, last_used_ip = coalesce($3, last_used_ip)
  where id = $1 and (last_used_at is null or last_used_at <= $4 or last_used_ip is distinct from coalesce($3, last_used_ip))`;

const UPDATE_SESSION_USE = 'update session set last_seen_at = $2 where id = $1 and last_seen_at <= $3';

/** These run for nearly every request, so they are prepared once a connection. */
export async function selectApiKey(pool: pg.Pool, publicId: string, keyHash: Buffer): Promise<StoredApiKey | undefined> {
  const query = { name: 'select-api-key', text: SELECT_API_KEY, values: [publicId, keyHash] };
  return (await pool.query<StoredApiKey>(query)).rows[0];
}

export async function selectSessionByTokenHash(pool: pg.Pool, tokenHash: Buffer): Promise<StoredSession | undefined> {
  const query = { name: 'select-session', text: SELECT_SESSION, values: [tokenHash] };
  return (await pool.query<StoredSession>(query)).rows[0];
}

/** Which use to write, unless one after `recentAfter` is written already. */
export interface CredentialUse {
  readonly id: string;
  readonly at: Date;
  readonly recentAfter: Date;
}

/** @param ip address of the client; null leaves the one there is */
export async function updateApiKeyUse(pool: pg.Pool, use: CredentialUse, ip: string | null): Promise<void> {
  await pool.query({
    name: 'update-api-key-use',
    text: UPDATE_API_KEY_USE,
    values: [use.id, use.at, ip, use.recentAfter],
  });
}

export async function updateSessionUse(pool: pg.Pool, use: CredentialUse): Promise<void> {
  await pool.query({ name: 'update-session-use', text: UPDATE_SESSION_USE, values: [use.id, use.at, use.recentAfter] });
}
