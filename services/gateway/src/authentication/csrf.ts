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
 * Refuses a request that a page of another origin made. The header is absent from requests of anything but a browser.
 *
 * @throws `csrf_invalid`
 */
export function checkOrigin(req: IncomingMessage, publicOrigin: string): void {
  const { origin, host } = req.headers;
  if (origin === undefined || origin === publicOrigin) return;
  if (!host || !URL.canParse(origin) || new URL(origin).host !== host.toLowerCase()) throw errors.csrf_invalid();
}

/** Refuses a request without the session's own token. Throws `csrf_invalid` (decisions 4). */
export function checkCsrfToken(req: IncomingMessage, principal: Principal): void {
  const given = req.headers['x-csrf-token'];
  if (typeof given !== 'string' || !constantTimeEqual(given, principal.csrfToken)) throw errors.csrf_invalid();
}
