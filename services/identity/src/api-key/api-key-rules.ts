import type { DomainError } from '@latchkey/kit/errors';
import { parseId } from '@latchkey/kit/id';
import { hasLength, withoutInvisible } from '@latchkey/kit/text';
import { errors } from '../errors.ts';

/** Every scope there is (specification 5, decisions 5). */
const SCOPES = new Set([
  'applications:read',
  'applications:create',
  'applications:update',
  'applications:delete',
  'files:upload',
  'files:read',
  'files:delete',
  'account:read',
]);
const NAME_LENGTH_MIN = 3;
const NAME_LENGTH_MAX = 64;
/** Most applications in a key's list. A key for more of them can be open to all. */
const APPLICATIONS_MAX = 1_000;
/** The last instant that has a year of four digits. */
const LATEST_TIME_MS = Date.UTC(10_000, 0) - 1;

function invalid(path: string, message: string): DomainError {
  return errors.api_key_settings_invalid().withDetails({ path, message });
}

/** The name in NFC, without invisible characters and white space around (decisions 6). Throws `api_key_settings_invalid`. */
export function parseName(text: string): string {
  const name = withoutInvisible(text);
  if (!hasLength(name, NAME_LENGTH_MIN, NAME_LENGTH_MAX)) throw invalid('name', 'must be 3 to 64 characters');
  return name;
}

/** The scopes as given. Throws `api_key_settings_invalid` unless they are one or more known ones, each once. */
export function parseScopes(scopes: readonly string[]): string[] {
  const known = scopes.length > 0 && scopes.every((scope) => SCOPES.has(scope));
  if (!known || new Set(scopes).size !== scopes.length) throw invalid('scopes', 'must be known scopes, each once');
  return [...scopes];
}

/** The time as given. Throws `api_key_settings_invalid` unless it is in the future. */
export function parseExpiry(expiresAt: Date, now: Date): Date {
  const time = expiresAt.getTime();
  // An invalid date compares false with everything.
  if (!(time > now.getTime() && time <= LATEST_TIME_MS))
    throw invalid('expiresAt', 'must be in the future and before the year 10000');
  return expiresAt;
}

/** The ids, each once and in canonical form where it has one. Throws `api_key_settings_invalid` for too many. */
export function parseApplicationIds(texts: readonly string[]): string[] {
  if (texts.length > APPLICATIONS_MAX) throw invalid('applicationIds', `must be at most ${APPLICATIONS_MAX} ids`);
  return [...new Set(texts.map((text) => parseId(text) ?? text))];
}
