import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

const ACCEPTED = /^[A-Za-z0-9._-]{1,128}$/;

/** The client's own `X-Request-Id` where it is acceptable, else a new UUID (decisions 1). */
export function requestIdOf(req: IncomingMessage): string {
  const given = req.headers['x-request-id'];
  return isAccepted(given) ? given : randomUUID();
}

/** Replaces a missing or unacceptable `X-Request-Id`, so that no other text from clients gets into logs. */
export function ensureRequestId({ headers }: { readonly headers: IncomingHttpHeaders }): void {
  if (!isAccepted(headers['x-request-id'])) headers['x-request-id'] = randomUUID();
}

function isAccepted(given: string | string[] | undefined): given is string {
  return typeof given === 'string' && ACCEPTED.test(given);
}
