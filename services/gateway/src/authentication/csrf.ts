import type { IncomingMessage } from 'node:http';
import { constantTimeEqual } from '@latchkey/kit/crypto/secrets';
import { errors } from '../errors.ts';
import type { Principal } from './credential.ts';

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS']);

/** True if the request may change something (RFC 9110, 9.2.1). */
export function isStateChanging(method: string | undefined): boolean {
  return !SAFE_METHODS.has(method ?? '');
}

/**
 * Throws `csrf_invalid` for a request from a page of another origin than PUBLIC_URL or the used
 * `Host`, which may be another name of this service. At the host of PUBLIC_URL, only the scheme of
 * PUBLIC_URL is allowed.
 *
 * @param scheme of the request: `http` unless a trusted proxy says otherwise
 */
export function checkWebOrigin(req: IncomingMessage, publicOrigin: string, scheme: string): void {
  const { origin, host = '' } = req.headers;
  if (origin === undefined) return;
  const given = origin.toLowerCase();
  if (given === publicOrigin) return;
  const used = URL.parse(`${scheme}://${host}`);
  if (!used || used.host === new URL(publicOrigin).host || given !== used.origin) throw errors.csrf_invalid();
}

/** Throws `csrf_invalid` for a request without the session's own token. */
export function checkCsrfToken(req: IncomingMessage, principal: Principal): void {
  const given = req.headers['x-csrf-token'];
  if (typeof given !== 'string' || !constantTimeEqual(given, principal.csrfToken)) throw errors.csrf_invalid();
}

/**
 * Throws `csrf_invalid` for a browser from a page of another site than `origins`. Old browsers and
 * other clients send no `Sec-Fetch-Site`, and pass.
 */
export function checkReferringSite({ headers }: IncomingMessage, origins: ReadonlySet<string>): void {
  if (headers['sec-fetch-site'] !== 'cross-site') return;
  // A page can suppress this header of its browser, but not forge it.
  const { referer = '' } = headers;
  if (!origins.has(URL.parse(referer)?.origin ?? '')) throw errors.csrf_invalid();
}

/** Throws `csrf_invalid` for a request of another site's page, except navigations. */
export function checkNavigation({ headers }: IncomingMessage): void {
  const { 'sec-fetch-site': site, 'sec-fetch-dest': destination = 'document' } = headers;
  if (site === 'cross-site' && destination !== 'document') throw errors.csrf_invalid();
}
