import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';
import { countHeader } from './raw-headers.ts';

const HOST = /^(?:[\w.-]+|\[([\da-f:.]+)\])(?::(\d{0,5}))?$/i;
const PORT_MAX = 65_535;

/**
 * Whether the head of a request is of HTTP/1.0 or 1.1, and gives its host as that requires: once, a name or address with or without a port, or in
 * HTTP/1.0 not at all (RFC 9112, 3.2). Node's parser also accepts HTTP/0.9 and 2.0, and any text for a host.
 */
export function isValidHead(req: IncomingMessage): boolean {
  const { httpVersion, headers } = req;
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return false;
  const count = countHeader(req, 'host');
  return count === 1 ? isHost(headers.host ?? '') : count === 0 && httpVersion === '1.0';
}

function isHost(text: string): boolean {
  const match = HOST.exec(text);
  if (!match) return false;
  const [, ipv6, port = '0'] = match;
  return (ipv6 === undefined || isIPv6(ipv6)) && Number(port) <= PORT_MAX;
}
