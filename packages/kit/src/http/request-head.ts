import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';
import { countHeader } from './raw-headers.ts';

const HOST = /^(?:[\w.-]+|\[([\da-f:.]+)\])(?::(\d{0,5}))?$/i;
const PORT_MAX = 65_535;

const VERSION_RULE = { path: 'request', message: 'must be HTTP/1.0 or HTTP/1.1' };
const HOST_RULE = { path: 'header.host', message: 'must be given once: a name or an address, with or without a port' };

/**
 * The rule that the head of a request breaks, for the details of an error: HTTP/1.0 or 1.1, and a valid host
 * (RFC 9112, 3.2), optional in HTTP/1.0. Node's parser also accepts HTTP/0.9 and 2.0, and any text as host.
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
