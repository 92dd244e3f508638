import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { isIPv6, type Socket } from 'node:net';

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;
const HOST = /^(?:[\w.-]+|\[([\da-f:.]+)\])(?::(\d{0,5}))?$/i;
const PORT_MAX = 65_535;

const VERSION_RULE = { path: 'request', message: 'must be HTTP/1.0 or HTTP/1.1' };
const HOST_RULE = { path: 'header.host', message: 'must be given once: a name or an address, with or without a port' };

/** The client's `X-Request-Id` if it is acceptable, else a new UUID. */
export function requestIdOf({ headers }: { readonly headers: IncomingHttpHeaders }): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUID();
}

/** Replaces a missing or unacceptable `X-Request-Id`: no other text from clients gets into logs. */
export function ensureRequestId(req: { readonly headers: IncomingHttpHeaders }): void {
  req.headers['x-request-id'] = requestIdOf(req);
}

/** Number of occurrences of a header. Node silently drops all but the first of most headers. */
export function countHeader({ rawHeaders }: IncomingMessage, lowerCaseName: string): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.length === lowerCaseName.length && name.toLowerCase() === lowerCaseName) count += 1;
  }
  return count;
}

/** True if a request announces a body (RFC 9112, 6). */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
}

/**
 * The rule that the head of a request breaks, for the details of an error: HTTP/1.0 or 1.1, and a
 * valid host (RFC 9112, 3.2), optional in HTTP/1.0. Node's parser accepts more.
 */
export function findHeadProblem(req: IncomingMessage): { readonly path: string; readonly message: string } | undefined {
  const { httpVersion, headers } = req;
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return VERSION_RULE;
  const count = countHeader(req, 'host');
  const isValid = count === 1 ? isHost(headers.host ?? '') : count === 0 && httpVersion === '1.0';
  return isValid ? undefined : HOST_RULE;
}

function isHost(text: string): boolean {
  const match = HOST.exec(text);
  if (!match) return false;
  const [, ipv6, port = '0'] = match;
  return (ipv6 === undefined || isIPv6(ipv6)) && Number(port) <= PORT_MAX;
}

/**
 * Limits the time for the body of a request, in milliseconds; a late one destroys its connection
 * unless `onLate` is given. Node's own limit is one for the whole server.
 */
export function limitBodyTime(
  req: IncomingMessage,
  res: ServerResponse,
  timeoutMs: number,
  onLate = (socket: Socket): unknown => socket.destroy(),
): void {
  if (req.complete || !hasBody(req)) return;
  // A request whose reading stops half way loses its socket.
  const { socket } = req;
  const timer = setTimeout(() => {
    if (!req.complete) onLate(socket);
  }, timeoutMs);
  const clear = () => clearTimeout(timer);
  req.once('end', clear).once('close', clear);
  // After an early response, the lingering close has its own limits.
  res.once('close', clear);
}
