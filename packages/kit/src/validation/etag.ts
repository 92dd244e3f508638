import { hash } from 'node:crypto';

/** Entity tag of a state (RFC 9110, 8.8.3), with its quotes: equal for equal states only. */
export function etagOf(state: readonly unknown[]): string {
  return `"${hash('sha256', JSON.stringify(state), 'base64url')}"`;
}

/**
 * True if a change expects no state, or the present one. Weak tags never match (RFC 9110, 13.1.1).
 *
 * @param expected entity tags, or `*`; empty expects nothing
 */
export function isExpected(expected: readonly string[], etag: string): boolean {
  return expected.length === 0 || expected.includes('*') || expected.includes(etag);
}
