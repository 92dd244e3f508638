import type { Selectable } from 'kysely';
import type pg from 'pg';
import type { ApiKeyTable, SessionTable } from '../db/schema.ts';

type Owned<T> = Selectable<T> & { readonly username: string };
export type StoredApiKey = Omit<
  Owned<ApiKeyTable>,
  'name' | 'public_id' | 'key_hash' | 'key_last4' | 'created_at' | 'updated_at'
>;
export type StoredSession = Omit<Owned<SessionTable>, 'token_hash' | 'created_at'>;

/** A subquery instead of a join leaves the planner one way to find one row. */
const USERNAME = '(select username from account where account.id = account_id) as username';

/**
 * The hash is in the condition, so that a wrong key with an existing public id costs the same as an
 * unknown one. HMACs under a secret pepper need no comparison in constant time.
 */
const SELECT_API_KEY = `
  select id, account_id, ${USERNAME}, scopes, all_applications, application_ids, expires_at, revoked_at, last_used_at, last_used_ip
  from api_key where public_id = $1 and key_hash = $2`;

const SELECT_SESSION = `select id, account_id, ${USERNAME}, last_seen_at, expires_at from session where token_hash = $1`;

/** Of concurrent uses the first one writes. */
const UPDATE_API_KEY_USE = `
  update api_key set last_used_at = $2, last_used_ip = coalesce($3, last_used_ip)
  where id = $1 and (last_used_at is null or last_used_at <= $4 or last_used_ip is distinct from coalesce($3, last_used_ip))`;

const UPDATE_SESSION_USE = 'update session set last_seen_at = $2 where id = $1 and last_seen_at <= $3';

/** Statements are named, so that each connection prepares them once. */
export async function selectApiKey(pool: pg.Pool, publicId: string, keyHash: Buffer): Promise<StoredApiKey | undefined> {
  const query = { name: 'select-api-key', text: SELECT_API_KEY, values: [publicId, keyHash] };
  return (await pool.query<StoredApiKey>(query)).rows[0];
}

export async function selectSession(pool: pg.Pool, tokenHash: Buffer): Promise<StoredSession | undefined> {
  const query = { name: 'select-session', text: SELECT_SESSION, values: [tokenHash] };
  return (await pool.query<StoredSession>(query)).rows[0];
}

export interface CredentialUse {
  readonly id: string;
  readonly at: Date;
  readonly recentAfter: Date;
}

/** @param ip address of the client; null leaves the recorded one */
export async function updateApiKeyUse(pool: pg.Pool, { id, at, recentAfter }: CredentialUse, ip: string | null): Promise<void> {
  await pool.query({ name: 'update-api-key-use', text: UPDATE_API_KEY_USE, values: [id, at, ip, recentAfter] });
}

export async function updateSessionUse(pool: pg.Pool, { id, at, recentAfter }: CredentialUse): Promise<void> {
  await pool.query({ name: 'update-session-use', text: UPDATE_SESSION_USE, values: [id, at, recentAfter] });
}
