import type { Changes } from '@latchkey/audit/record';
import { errors } from '../errors.ts';
import type { ApiKeyRow } from './api-key.store.ts';
import { parseApplicationIds, parseExpiry, parseName, parseScopes } from './api-key-rules.ts';

/** What to change of a key, as its owner sent it; what is undefined stays. */
export interface ApiKeyChange {
  readonly name: string | undefined;
  readonly scopes: readonly string[] | undefined;
  readonly allApplications: boolean | undefined;
  readonly applicationIds: readonly string[] | undefined;
  /** Null means never. */
  readonly expiresAt: Date | null | undefined;
}

/** A change that contradicts nothing in itself, by column. */
export type ColumnChanges = Partial<Pick<ApiKeyRow, 'name' | 'scopes' | 'all_applications' | 'application_ids' | 'expires_at'>>;

/**
 * Checks a change as far as it can be without the stored key. Opening a key to all applications empties its list.
 *
 * @throws `api_key_settings_invalid`
 */
export function parseChange(change: ApiKeyChange, now: Date): ColumnChanges {
  const { name, scopes, allApplications, expiresAt } = change;
  const applicationIds = change.applicationIds && parseApplicationIds(change.applicationIds);
  if (allApplications !== undefined && applicationIds && allApplications === applicationIds.length > 0) {
    throw errors.api_key_settings_invalid();
  }
  return {
    ...(name !== undefined && { name: parseName(name) }),
    ...(scopes && { scopes: parseScopes(scopes) }),
    ...(expiresAt !== undefined && { expires_at: expiresAt && parseExpiry(expiresAt, now) }),
    ...(allApplications !== undefined && { all_applications: allApplications }),
    ...(applicationIds && { application_ids: applicationIds }),
    ...(allApplications && { application_ids: [] }),
  };
}

/**
 * Checks a change against the stored key: a list of applications goes with a restricted key, and a restricted key with a list.
 *
 * @throws `revoked_api_key_unchangeable`, `api_key_conflict`
 */
export function checkChange(stored: ApiKeyRow, changes: ColumnChanges): void {
  if (stored.revoked_at) throw errors.revoked_api_key_unchangeable();
  if (changes.all_applications === undefined && !changes.application_ids) return;
  const { all_applications, application_ids } = { ...stored, ...changes };
  if (all_applications === application_ids.length > 0) throw errors.api_key_conflict();
}

/** A change as the audit log has it: by the names that the record has, and only what is given. */
export function toAuditChanges(changes: ColumnChanges): Changes {
  const { name, scopes, all_applications: allApplications, application_ids: applicationIds, expires_at: expiresAt } = changes;
  return { name, scopes, allApplications, applicationIds, expiresAt: expiresAt ? expiresAt.toISOString() : expiresAt };
}
