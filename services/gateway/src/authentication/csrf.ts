import type { IncomingMessage } from 'node:http';
import { constantTimeEqual } from '@latchkey/kit/secrets';
import { errors } from '../errors.ts';
import type { Principal } from './principal.ts';

const SAFE_METHODS = new Set(['GET', 'HEAD']);

/** Whether the request may change something (RFC 9110, 9.2.1). */
export function isStateChanging(method: string | undefined): boolean {
  return !SAFE_METHODS.has(method ?? '');
}

/**
 * Refuses a request that a page of another origin made: of another scheme, host or port than PUBLIC_URL, and than what the client called, which may
 * be another name of this service. At the host of PUBLIC_URL its scheme alone is right, whatever a proxy before us says. The header is absent from
 * requests of anything but a browser.
 *
 * @param scheme what the client called by, as far as is known here: `http` unless a trusted proxy says otherwise
 * @throws `csrf_invalid`
 */
export function checkOrigin(req: IncomingMessage, publicOrigin: string, scheme: string): void {
  const { origin, host = '' } = req.headers;
  if (origin === undefined) return;
  const given = origin.toLowerCase();
  if (given === publicOrigin) return;
  const called = parseUrl(`${scheme}://${host}`);
  if (!called || called.host === new URL(publicOrigin).host || given !== called.origin) throw errors.csrf_invalid();
}

function parseUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}

/** Refuses a request without the session's own token. Throws `csrf_invalid` (decisions 4). */
export function checkCsrfToken(req: IncomingMessage, principal: Principal): void {
  const given = req.headers['x-csrf-token'];
  if (typeof given !== 'string' || !constantTimeEqual(given, principal.csrfToken)) throw errors.csrf_invalid();
}
