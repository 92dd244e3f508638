import { hash } from 'node:crypto';
import { errors } from '../errors.ts';

/** Entity tag of a state (RFC 9110, 8.8.3), with its quotes: equal for equal states only. */
export function etagOf(state: readonly (string | boolean)[]): string {
  return `"${hash('sha256', JSON.stringify(state), 'base64url')}"`;
}

/**
 * Compares the state that a change expects, if it expects one, with the present one. Weak tags
 * never match (RFC 9110, 13.1.1).
 *
 * @throws `changed_meanwhile`
 */
export function checkMatch(expected: readonly string[], etag: string): void {
  if (expected.length > 0 && !expected.includes('*') && !expected.includes(etag)) throw errors.changed_meanwhile();
}
