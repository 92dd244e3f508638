import type { Changes } from '@latchkey/audit/record';
import { withoutInvisible } from '@latchkey/contract/invisible';
import { describeLength, KEY_NAME } from '@latchkey/contract/lengths';
import { KEY_APPLICATIONS_MAX } from '@latchkey/contract/limits';
import { SCOPES } from '@latchkey/contract/scopes';
import type { DomainError } from '@latchkey/kit/errors/errors';
import { parseId } from '@latchkey/kit/validation/id';
import { hasLength } from '@latchkey/kit/validation/text';
import { errors } from '../proto-errors.ts';
import type { ApiKeyRow } from './api-key.store.ts';

const KNOWN_SCOPES = new Set<string>(SCOPES);
/** The last instant with a year of four digits. */
const EXPIRY_MAX_MS = Date.UTC(10_000, 0) - 1;

export interface ApiKeyChange {
  readonly name?: string | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly allApplications?: boolean | undefined;
  readonly applicationIds?: readonly string[] | undefined;
  readonly expiresAt?: Date | null | undefined;
}

export type ColumnChanges = Partial<Pick<ApiKeyRow, 'name' | 'scopes' | 'all_applications' | 'application_ids' | 'expires_at'>>;

/**
 * Validates a change without the stored key. One that opens the key to all applications clears its
 * list.
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

/** Validates a change against the stored key: only restricted keys list applications. */
export function checkChange(stored: ApiKeyRow, changes: ColumnChanges): void {
  if (stored.trusted_issuer_id) throw errors.exchanged_api_key_unchangeable();
  if (stored.revoked_at) throw errors.revoked_api_key_unchangeable();
  if (changes.all_applications === undefined && !changes.application_ids) return;
  const { all_applications, application_ids } = { ...stored, ...changes };
  if (all_applications === application_ids.length > 0) throw errors.api_key_conflict();
}

export function toAuditChanges(changes: ColumnChanges): Changes {
  const { name, scopes, all_applications: allApplications, application_ids: applicationIds, expires_at: expiresAt } = changes;
  return { name, scopes, allApplications, applicationIds, expiresAt: expiresAt ? expiresAt.toISOString() : expiresAt };
}

export function isActive(key: Pick<ApiKeyRow, 'revoked_at' | 'expires_at'>, now: Date): boolean {
  return !key.revoked_at && (!key.expires_at || key.expires_at > now);
}

function parseName(text: string): string {
  const name = withoutInvisible(text);
  if (!hasLength(name, KEY_NAME.min, KEY_NAME.max)) throw invalid('name', `must be ${describeLength(KEY_NAME)}`);
  return name;
}

function parseScopes(scopes: readonly string[]): string[] {
  const isSized = scopes.length > 0 && scopes.length <= SCOPES.length;
  const known = isSized && scopes.every((scope) => KNOWN_SCOPES.has(scope));
  if (!known || new Set(scopes).size !== scopes.length) throw invalid('scopes', 'must be known scopes, each once');
  return [...scopes];
}

function parseExpiry(expiresAt: Date, now: Date): Date {
  const time = expiresAt.getTime();
  // An invalid date compares false with everything.
  if (time > now.getTime() && time <= EXPIRY_MAX_MS) return expiresAt;
  throw invalid('expiresAt', 'must be in the future and before the year 10000');
}

function parseApplicationIds(texts: readonly string[]): string[] {
  if (texts.length > KEY_APPLICATIONS_MAX) throw invalid('applicationIds', `must be at most ${KEY_APPLICATIONS_MAX} ids`);
  return [...new Set(texts.map((text) => parseId(text) ?? text))];
}

function invalid(path: string, message: string): DomainError {
  return errors.api_key_settings_invalid().withDetails({ path, message });
}
