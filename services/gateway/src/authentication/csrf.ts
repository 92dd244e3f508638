import type { IncomingMessage } from 'node:http';
import { constantTimeEqual } from '@latchkey/kit/crypto/secrets';
import { errors } from '../errors.ts';
import type { Principal } from './principal.ts';

const SAFE_METHODS = new Set(['GET', 'HEAD']);

/** Whether the request may change something (RFC 9110, 9.2.1). */
export function isStateChanging(method: string | undefined): boolean {
  return !SAFE_METHODS.has(method ?? '');
}

/**
 * Rejects a request that a page of another origin made. Allowed are the origin of PUBLIC_URL and that of the `Host` the client used,
 * which may be another name of this service; at the host of PUBLIC_URL only its own scheme. Only browsers send the header.
 *
 * @param scheme what the client used as far as is known here: `http` unless a trusted proxy says otherwise
 * @throws `csrf_invalid`
 */
export function checkOrigin(req: IncomingMessage, publicOrigin: string, scheme: string): void {
  const { origin, host = '' } = req.headers;
  if (origin === undefined) return;
  const given = origin.toLowerCase();
  if (given === publicOrigin) return;
  const used = URL.parse(`${scheme}://${host}`);
  if (!used || used.host === new URL(publicOrigin).host || given !== used.origin) throw errors.csrf_invalid();
}

/** Rejects a request without the session's own token. Throws `csrf_invalid` (decisions 4). */
export function checkCsrfToken(req: IncomingMessage, principal: Principal): void {
  const given = req.headers['x-csrf-token'];
  if (typeof given !== 'string' || !constantTimeEqual(given, principal.csrfToken)) throw errors.csrf_invalid();
}

/**
 * Rejects a browser that a page of another site sent here, other than one of `origins`. Other clients and old browsers say
 * nothing of where they come from, and are admitted.
 *
 * @throws `csrf_invalid`
 */
export function checkReferringSite({ headers }: IncomingMessage, origins: ReadonlySet<string>): void {
  if (headers['sec-fetch-site'] !== 'cross-site') return;
  // A page can suppress the header of its browser, but not forge it.
  const { referer = '' } = headers;
  if (!origins.has(URL.parse(referer)?.origin ?? '')) throw errors.csrf_invalid();
}

/**
 * Rejects what a page of another site embeds, such as a picture or a frame: a browser that an issuer sends back navigates.
 *
 * @throws `csrf_invalid`
 */
export function checkNavigation({ headers }: IncomingMessage): void {
  const { 'sec-fetch-site': site, 'sec-fetch-dest': destination = 'document' } = headers;
  if (site === 'cross-site' && destination !== 'document') throw errors.csrf_invalid();
}
